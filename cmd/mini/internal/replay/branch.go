package replay

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/cmd/mini/internal/bench"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	datasetopen "github.com/minibench/mini/datasets/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/setup"
	"github.com/minibench/mini/trajectories"
)

// branchFlags are the flags that require --from-step.
var branchFlags = []string{"model", "local", "model-class", "replies", "cost-limit", "force"}

// branchKeys are additional settings that a branch takes from its recording, so
// that the conversation continues under the same rules.
var branchKeys = []string{
	"agent.system_template", "agent.instance_template", "agent.observation_template", "agent.format_error_template",
	"agent.protocol", "agent.action_regex", "agent.action_tag", "agent.tool_calls", "agent.plain_reply", "agent.step_limit", "agent.cost_limit",
	"agent.wall_time_limit_seconds", "agent.max_consecutive_format_errors", "agent.autosubmit", "agent.submission",
	"agent.compaction", "agent.compaction_tokens", "agent.compaction_keep", "agent.summary_template", "agent.summary_max_chars", "agent.tail_template",
}

// branch continues each recording from a step, as attempts of a new run.
func (o *options) branch(ctx, kill context.Context, s cmdutil.Streams, all []*recording) error {
	j, err := o.prepareBranch(ctx, s, all)
	if err != nil {
		return usage.Wrap(err)
	}
	return j.Run(ctx, kill, s)
}

// prepareBranch validates the recordings and the settings, and returns the
// batch that works on the branches.
func (o *options) prepareBranch(ctx context.Context, s cmdutil.Streams, all []*recording) (*bench.Job, error) {
	for _, r := range all {
		if r.failed != nil {
			return nil, r.failed
		}
	}
	if _, err := o.MergeLocal(ctx, "swebench"); err != nil {
		return nil, err
	}
	o.PrintLocalModel(s.Err)
	known, err := o.rows(ctx, s, all)
	if err != nil {
		return nil, err
	}
	branch := &runner.Branch{Parents: map[string]runner.Parent{}, Force: o.force}
	var rows []datasets.Instance
	var settings []recordedSetting
	for _, r := range all {
		r.setRow(known)
		theirs, err := o.branchSettings(r)
		switch _, twice := branch.Parents[r.row.ID]; {
		case err != nil:
			return nil, err
		case twice:
			return nil, usage.Errorf("%s and another recording are both on %s; pass only one of them", r.path, text.Printable(r.id))
		case len(rows) > 0 && (!slices.Equal(theirs, settings) || r.isDemo != all[0].isDemo):
			return nil, usage.Errorf("%s and %s have different settings; pass only one of them", r.path, all[0].path)
		}
		settings = theirs
		if branch.Parents[r.row.ID], err = o.parent(r); err != nil {
			return nil, usage.Errorf("%s: %w", r.path, err)
		}
		rows = append(rows, r.row)
	}
	cfg, err := o.configure(all[0], settings)
	if err == nil {
		err = o.checkSandbox(cfg, all[0])
	}
	if err != nil {
		return nil, err
	}
	if err := checkProtocol(cfg, all[0], settings); err != nil {
		return nil, err
	}
	return o.branchJob(s, cfg, branch, rows, all[0])
}

// branchJob returns the batch that works on the branches.
func (o *options) branchJob(s cmdutil.Streams, cfg *configs.Resolved, b *runner.Branch, rows []datasets.Instance, first *recording) (*bench.Job, error) {
	if err := settings.CheckModelNames(cfg); err != nil {
		return nil, err
	}
	a, err := setup.NewAgent(cfg, rows)
	if err != nil {
		return nil, err
	}
	display, err := progress.Choose("", progress.DetectTerminal(s), progress.Kinds)
	if err != nil {
		return nil, err
	}
	options := &bench.Options{Flags: o.Flags, Output: o.output, Redo: true, JSON: o.json}
	name := filepath.Base(cmp.Or(first.run, first.path))
	if first.isDemo {
		options.Subsets, name = []string{datasetopen.Demo}, datasetopen.Demo
	}
	j := &bench.Job{
		Options: options, Cfg: cfg, Agent: a, Dir: o.output, Progress: display, Branch: b,
		Input: bench.Input{Dataset: runner.Dataset{Name: name, Rows: len(rows), Selected: len(rows)}, Rows: rows},
	}
	if j.Earlier, err = bench.ReadEarlier(j.Dir); err != nil {
		return nil, err
	}
	if j.Models, err = modelopen.New(cfg, first.isDemo, rows); err == nil {
		err = settings.PrintCostNote(s.Err, cfg)
	}
	if err == nil {
		err = j.CheckFolder()
	}
	return j, err
}

// branchSettings returns the settings that a branch takes from a recording. It
// takes no templates and limits from other agents' recordings.
func (o *options) branchSettings(r *recording) ([]recordedSetting, error) {
	all, err := o.settings(r)
	if err != nil || r.file.Format != trajectories.Format {
		return append(all, recordedSetting{"agent.protocol", fmt.Sprintf("%q", r.protocol())}), err
	}
	return append(all, r.settings(branchKeys, nil)...), nil
}

// protocol returns the protocol that the model of another agent's recording
// used.
func (r *recording) protocol() string {
	t, err := r.transcript()
	if err == nil && slices.ContainsFunc(t.Entries, func(e trajectories.Entry) bool { return len(e.ToolCalls) > 0 }) {
		return "tools"
	}
	return "text"
}

// checkProtocol returns an error if the branch would use another protocol than
// its history.
func checkProtocol(cfg *configs.Resolved, r *recording, settings []recordedSetting) error {
	recorded := "text"
	for _, s := range settings {
		if s.key == "agent.protocol" && s.value != `""` {
			recorded = s.value[1 : len(s.value)-1]
		}
	}
	if p := cmp.Or(cfg.Agent.Protocol, "text"); p != recorded {
		return usage.Errorf("%s uses the protocol %s, and a branch cannot continue in %s; leave agent.protocol out", r.path, recorded, p)
	}
	return nil
}

// parent returns the step of a recording at which the branch starts.
func (o *options) parent(r *recording) (runner.Parent, error) {
	sum, err := cmdutil.FileSHA256(r.path)
	if err != nil {
		return runner.Parent{}, err
	}
	return runner.NewParent(trajectories.Origin{
		InstanceID: r.id, Attempt: r.attempt, Run: filepath.Base(cmp.Or(r.run, r.path)), SHA256: sum, Step: o.step,
	}, r.file.Records)
}
