package replay

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/cmd/mini/internal/app"
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
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/setup"
	"github.com/minibench/mini/trajectories"
)

// branchFlags are the flags that require --from-step.
var branchFlags = []string{"model", "local", "model-class", "replies", "cost-limit", "force"}

// branchKeys are settings that a branch takes from its recording in addition to
// recordedKeys, so that the conversation continues under the same rules.
var branchKeys = []string{
	"agent.system_template", "agent.instance_template", "agent.observation_template", "agent.format_error_template",
	"agent.protocol", "agent.action_regex", "agent.action_tag", "agent.tool_calls", "agent.plain_reply", "agent.step_limit", "agent.cost_limit",
	"agent.wall_time_limit_seconds", "agent.max_consecutive_format_errors", "agent.autosubmit", "agent.submission",
	"agent.compaction", "agent.compaction_tokens", "agent.compaction_keep", "agent.summary_template", "agent.summary_max_chars", "agent.tail_template",
}

// prepareBranch validates the recordings and the settings, and returns the batch that
// continues the recordings.
func (o *Options) prepareBranch(ctx context.Context, a *app.App, recordings []*recording) (*bench.Job, error) {
	for _, r := range recordings {
		if r.err != nil {
			return nil, r.err
		}
	}
	cfg, err := o.Merge(ctx, "swebench")
	if err != nil {
		return nil, err
	}
	o.PrintNotes(a.Err, cfg)
	rowsByID, err := o.rows(ctx, a, recordings)
	if err != nil {
		return nil, err
	}
	branch := &runner.Branch{Parents: map[string]runner.BranchParent{}, Force: o.force}
	var rows []datasets.Instance
	var settings []recordedSetting
	for _, r := range recordings {
		r.setRow(rowsByID)
		recorded, err := o.branchSettings(r)
		switch _, duplicate := branch.Parents[r.row.ID]; {
		case err != nil:
			return nil, err
		case duplicate:
			return nil, usage.Errorf("%s and another recording are both on %s; pass only one of them", r.path, text.Printable(r.id))
		case len(rows) > 0 && (!slices.Equal(recorded, settings) || r.isDemo != recordings[0].isDemo):
			return nil, usage.Errorf("%s and %s have different settings; pass only one of them", r.path, recordings[0].path)
		}
		settings = recorded
		sum, err := cmdutil.FileSHA256(r.path)
		if err == nil {
			branch.Parents[r.row.ID], err = runner.NewParent(trajectories.Origin{
				InstanceID: r.id, Attempt: r.attempt, Run: filepath.Base(cmp.Or(r.run, r.path)), SHA256: sum, Step: o.step,
			}, r.file.Records)
		}
		if err != nil {
			return nil, usage.Errorf("%s: %w", r.path, err)
		}
		rows = append(rows, r.row)
	}
	if cfg, err = o.configure(recordings[0], settings); err != nil {
		return nil, err
	}
	protocol := "text" // of the recordings
	for _, s := range settings {
		if s.key == "agent.protocol" && s.value != `""` {
			protocol = s.value[1 : len(s.value)-1]
		}
	}
	if p := cmp.Or(cfg.Agent.Protocol, "text"); p != protocol {
		return nil, usage.Errorf("%s uses the protocol %s, and a branch cannot continue in %s; leave agent.protocol out", recordings[0].path, protocol, p)
	}
	return o.branchJob(a, cfg, branch, rows, recordings[0])
}

// branchJob returns the batch that continues recordings as described by b. first is
// the first recording; all have the same settings.
func (o *Options) branchJob(a *app.App, cfg *configs.Resolved, b *runner.Branch, rows []datasets.Instance, first *recording) (*bench.Job, error) {
	if err := settings.CheckModelNames(cfg); err != nil {
		return nil, err
	}
	agent, err := setup.NewAgent(cfg, rows)
	if err != nil {
		return nil, err
	}
	display, err := progress.Choose("", progress.DetectTerminal(a.Streams), progress.Kinds)
	if err != nil {
		return nil, err
	}
	benchOptions := &bench.Options{Flags: o.Flags, Output: o.output, RedoExisting: true, JSON: o.json}
	name := filepath.Base(cmp.Or(first.run, first.path))
	if first.isDemo {
		benchOptions.Datasets.Subsets, name = []string{datasetopen.Demo}, datasetopen.Demo
	}
	j := &bench.Job{
		Options: benchOptions, Config: cfg, Agent: agent, Dir: o.output, Progress: display, Branch: b,
		Input: bench.Input{Dataset: runs.Dataset{Name: name, Rows: len(rows), Selected: len(rows)}, Rows: rows},
	}
	if err := j.ReadEarlierRun(); err != nil {
		return nil, err
	}
	if j.Models, err = modelopen.New(cfg, first.isDemo, rows, nil); err == nil {
		err = settings.PrintCostNote(a.Err, cfg)
	}
	if err == nil {
		err = j.CheckFolder()
	}
	return j, err
}

// branchSettings returns the settings that a branch takes from a recording. From a
// recording of another agent, it takes none of branchKeys except the protocol that its model used.
func (o *Options) branchSettings(r *recording) ([]recordedSetting, error) {
	settings, err := o.settings(r)
	if err != nil || r.file.Format == trajectories.Format {
		return append(settings, r.settings(branchKeys, nil)...), err
	}
	protocol := `"text"`
	t, err := r.transcript()
	if err == nil && slices.ContainsFunc(t.Entries, func(e trajectories.Entry) bool { return len(e.ToolCalls) > 0 }) {
		protocol = `"tools"`
	}
	return append(settings, recordedSetting{"agent.protocol", protocol}), nil
}
