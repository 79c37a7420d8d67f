package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// branchFlags are those that say how a model goes on, and nothing without one.
var branchFlags = []string{"model", "local", "model-class", "replies", "cost-limit", "force"}

// branchKeys are more settings that a branch takes from its recording: how the
// conversation goes on as it began.
var branchKeys = []string{
	"agent.system_template", "agent.instance_template", "agent.observation_template", "agent.format_error_template",
	"agent.protocol", "agent.action_regex", "agent.action_tag", "agent.tool_calls", "agent.plain_reply", "agent.step_limit", "agent.cost_limit",
	"agent.wall_time_limit_seconds", "agent.max_consecutive_format_errors", "agent.autosubmit", "agent.submission",
	"agent.compaction", "agent.compaction_tokens", "agent.compaction_keep", "agent.summary_template", "agent.summary_max_chars", "agent.tail_template",
}

// branch lets a model go on from a point of each recording, in a run of its own.
func (o *replayOptions) branch(ctx, kill context.Context, s Streams, all []*recording) error {
	j, err := o.prepareBranch(ctx, s, all)
	if err != nil {
		return before(err)
	}
	return j.run(ctx, kill, s)
}

// prepareBranch finds every mistake before a model is called.
func (o *replayOptions) prepareBranch(ctx context.Context, s Streams, all []*recording) (*job, error) {
	for _, r := range all {
		if r.failed != nil {
			return nil, r.failed
		}
	}
	if _, err := o.mergeLocal(ctx, "swebench"); err != nil {
		return nil, err
	}
	if err := o.sayLocal(s.Err); err != nil {
		return nil, err
	}
	known, err := o.rows(ctx, s, all)
	if err != nil {
		return nil, err
	}
	branch := &runner.Branch{Parents: map[string]runner.Parent{}, Force: o.force}
	var rows []datasets.Instance
	var settings []recordedSetting
	for _, r := range all {
		r.place(known)
		theirs, err := o.branchSettings(r)
		switch _, twice := branch.Parents[r.row.ID]; {
		case err != nil:
			return nil, err
		case twice:
			return nil, usagef("%s and another one are both on %s; branch off from one at a time", r.path, report.Printable(r.id))
		case len(rows) > 0 && (!slices.Equal(theirs, settings) || r.isDemo != all[0].isDemo):
			return nil, usagef("%s was not made with the settings of %s; branch off from one at a time", r.path, all[0].path)
		}
		settings = theirs
		if branch.Parents[r.row.ID], err = o.parent(r); err != nil {
			return nil, usagef("%s: %w", r.path, err)
		}
		rows = append(rows, r.row)
	}
	cfg, err := o.configure(all[0], settings)
	if err == nil {
		err = o.mayRun(cfg, all[0])
	}
	if err != nil {
		return nil, err
	}
	if err := sameProtocol(cfg, all[0], settings); err != nil {
		return nil, err
	}
	return o.branchJob(s, cfg, branch, rows, all[0])
}

// branchJob is the batch that works on the branches.
func (o *replayOptions) branchJob(s Streams, cfg *configs.Resolved, b *runner.Branch, rows []datasets.Instance, first *recording) (*job, error) {
	if err := checkModelName(cfg); err != nil {
		return nil, err
	}
	a, err := checkAgent(cfg, rows)
	if err != nil {
		return nil, err
	}
	display, err := chooseProgress("", displayOf(s))
	if err != nil {
		return nil, err
	}
	bench := &benchOptions{configFlags: o.configFlags, output: o.output, redo: true, json: o.json}
	name := filepath.Base(cmp.Or(first.run, first.path))
	if first.isDemo {
		bench.subsets, name = []string{demoSubset}, demoSubset
	}
	j := &job{
		benchOptions: bench, cfg: cfg, agent: a, dir: o.output, display: display, branch: b,
		work: workload{dataset: runner.Dataset{Name: name, Rows: len(rows), Selected: len(rows)}, rows: rows},
	}
	if j.earlier, err = earlier(j.dir); err != nil {
		return nil, err
	}
	if j.models, err = newModels(cfg, first.isDemo, rows); err == nil {
		err = costBounds(s.Err, cfg)
	}
	if err == nil {
		err = j.suits()
	}
	return j, err
}

// branchSettings are those that a branch takes from a recording. Another agent's
// templates and limits are not mini's.
func (o *replayOptions) branchSettings(r *recording) ([]recordedSetting, error) {
	all, err := o.settings(r)
	if err != nil || r.file.Format != trajectories.Format {
		return append(all, recordedSetting{"agent.protocol", fmt.Sprintf("%q", r.protocol())}), err
	}
	return append(all, r.settings(branchKeys, nil)...), nil
}

// protocol is how the model of another agent's recording wrote its commands.
func (r *recording) protocol() string {
	t, err := r.gather()
	if err == nil && slices.ContainsFunc(t.Entries, func(e trajectories.Entry) bool { return len(e.Calls) > 0 }) {
		return "tools"
	}
	return "text"
}

// sameProtocol refuses to go on in another protocol than the history is in: the
// model would be told of one, and see the other.
func sameProtocol(cfg *configs.Resolved, r *recording, settings []recordedSetting) error {
	theirs := "text"
	for _, one := range settings {
		if one.key == "agent.protocol" && one.value != `""` {
			theirs = one.value[1 : len(one.value)-1]
		}
	}
	if ours := cmp.Or(cfg.Agent.Protocol, "text"); ours != theirs {
		return usagef("%s is in the protocol %s, and a branch of it cannot go on in %s; leave agent.protocol away", r.path, theirs, ours)
	}
	return nil
}

// parent is the point of a recording that is gone on from.
func (o *replayOptions) parent(r *recording) (runner.Parent, error) {
	sum, err := sha256Of(r.path)
	if err != nil {
		return runner.Parent{}, err
	}
	return runner.NewParent(trajectories.Origin{
		InstanceID: r.id, Attempt: r.attempt, Run: filepath.Base(cmp.Or(r.run, r.path)), SHA256: sum, Step: o.step,
	}, r.file.Records)
}
