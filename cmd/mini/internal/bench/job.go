package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/system/doctor"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/version"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/setup"
)

// Job is a batch that is ready to run.
type Job struct {
	*Options
	Cfg    *configs.Resolved
	Input  Input
	Agent  *agent.Agent
	Models *modelopen.Models
	Dir    string
	// Earlier is the run that the folder already contains.
	Earlier *runner.Run
	// tools are the optional tools; capabilities are what prompts say of them.
	tools        *setup.Tools
	capabilities agent.Capabilities
	// Display is the kind of progress that fits.
	Progress string
	// Branch is where attempts begin, where that is not their beginning.
	Branch *runner.Branch
	// obstacle is why a dry run's batch would not start.
	obstacle error
	// evaluated is the result of --eval; nil without it.
	evaluated *evaluate.Summary
}

// Run runs the batch and prints its result.
func (j *Job) Run(ctx, kill context.Context, s cmdutil.Streams) error {
	p := progress.New(j.Progress, s, progress.Heading{
		Dataset: j.Input.Dataset.Name, Model: modelopen.Name(j.Cfg), Folder: j.Dir, IDs: instanceIDs(j.Input.Rows), Judged: j.Cfg.Run.Eval,
	})
	defer p.Close()
	if j.Cfg.Run.Eval {
		if err := eval.CheckCache(j.Cfg.Eval.Cache); err != nil {
			return err
		}
	}
	if j.events == "-" {
		return usage.Errorf("--events -: stdout has the results of a batch; name a file")
	}
	l, err := cmdutil.OpenEventLog(j.events, s, envopen.Redact(j.Cfg))
	if err != nil {
		return err
	}
	defer l.Close()
	if j.tools, err = setup.NewTools(ctx, j.Cfg); err != nil {
		return usage.Wrap(err)
	}
	defer j.tools.Close() //nolint:errcheck // connections end with the process
	if j.capabilities, err = j.tools.Capabilities(); err != nil {
		return usage.Wrap(err)
	}
	setup.WarnUnmentioned(s.Err, j.Agent, j.capabilities)
	// Connect to the engine before creating the folder, to leave no empty run
	// behind if there is none.
	var log *runner.Log
	boxes, err := envopen.New(ctx, kill, j.Cfg, j.isDemo(), j.canUseHost(), j.Dir, s.Err, progress.Observe(func(e runner.Event) { log.Emit(e) }))
	if err != nil {
		return err
	}
	boxes.ScrubOnce(j.Cfg)
	if err := boxes.CheckBudget(ctx, j.remainingRows()); err != nil {
		return errors.Join(usage.Wrap(err), boxes.Close())
	}
	folder, err := runner.Open(j.Dir)
	if err != nil {
		return errors.Join(usage.Wrap(err), boxes.Close())
	}
	defer folder.Close() //nolint:errcheck // the lock ends with the process
	folder.SetVerdictFilter(eval.IsSignedByUser)
	var g *evaluation
	d := &controller{folder: folder, models: j.Models, images: boxes.Images}
	log = runner.NewLog(folder, func(e runner.Event) {
		p.Event(e)
		g.countVerdict(e)
		d.tracker.Update(e)
	})
	log.Redact = envopen.Redact(j.Cfg)
	d.listen(log)
	defer d.server.Close() //nolint:errcheck // no effect after the Close below
	p.Controller = d
	j.Models.OnLimits(progress.EmitLimits(log.Emit))
	if g, err = j.startEvaluation(ctx, s.Err, boxes, folder, log); err != nil {
		return errors.Join(err, boxes.Close())
	}
	supervise, err := setup.NewApprovers(j.Cfg, boxes.Class)
	if err != nil {
		return errors.Join(usage.Wrap(err), boxes.Close())
	}
	cmdutil.PrintWarnings(s.Err, j.tools.Warnings())
	ignore, err := replay.ParseIgnore(j.Cfg.Replay.Ignore)
	if err != nil {
		return errors.Join(usage.Wrap(err), boxes.Close())
	}
	b := runner.Batch{
		NewApprover: supervise, NewTools: j.tools.ForAttempt,
		Folder: folder, Agent: j.Agent, Sandboxes: boxes, Models: j.Models, ModelName: modelopen.Name(j.Cfg), Log: log,
		Workers: j.Cfg.Run.Workers, Repetitions: j.Cfg.Run.Attempts, MaxTries: j.Cfg.Run.MaxTries, MaxProviderFailures: j.Cfg.Run.MaxProviderFailures,
		Budget: runner.Budget{Cost: j.Cfg.Run.TotalCostLimit, Calls: j.Cfg.Run.TotalCalls},
		Redo:   j.Redo, ResumeAttempts: j.Cfg.Run.ResumeAttempts, Force: j.force, Ignore: ignore, Sync: j.Cfg.Run.Fsync, KeepSandbox: envopen.KeepRule(j.Cfg.Run.Keep), Branch: j.Branch,
		Control: &d.control,
	}
	if l != nil {
		b.NewBus = l.NewBus
	}
	if g != nil {
		b.OnSubmission = g.submit
	}
	sum, err := j.runBatch(ctx, p.Writer(), &b, boxes.Class)
	if g != nil {
		verdicts, failed := g.wait(ctx, p.Writer(), err)
		j.evaluated, err = &verdicts, errors.Join(err, failed, folder.UpdateVerdicts())
	}
	err = errors.Join(err, d.server.Close())
	p.Close() // restore the screen before the summary
	err = errors.Join(err, boxes.Close(), j.finish(ctx, s, sum, folder, boxes.Class, err))
	return cmdutil.MarkDiskFull(err, sum.Instances > 0 && j.isComplete(sum))
}

// isComplete reports whether every instance has a result and, with --eval, every submission a
// verdict.
func (j *Job) isComplete(sum runner.Summary) bool {
	return sum.Complete() && (j.evaluated == nil || j.evaluated.IsComplete())
}

// ReadEarlier reads the run in a folder. It returns an empty run if there is none.
func ReadEarlier(dir string) (*runner.Run, error) {
	if err := runner.CheckFolder(dir); err != nil {
		return nil, err
	}
	run, err := runner.ReadRun(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, runner.ErrNotRunFolder) {
		return &runner.Run{}, nil
	}
	return run, err
}

// CheckFolder rejects a folder with results of another model, and more workers than the
// open-file limit allows.
func (j *Job) CheckFolder() error {
	selected := map[string]bool{}
	for _, in := range j.Input.Rows {
		selected[in.ID] = true
	}
	left, k := len(selected), max(1, j.Cfg.Run.Attempts)
	for _, in := range j.Earlier.Instances {
		if j.Redo && selected[in.ID] {
			continue // its results will be replaced
		}
		if selected[in.ID] && in.Missing(k) == 0 {
			left--
		}
		for _, r := range in.Repetitions {
			if !r.Class.Counts() || r.Repetition > k {
				continue
			}
			if theirs := in.Model(r.Attempt); theirs != "" && theirs != modelopen.Name(j.Cfg) {
				return usage.Errorf("%s has results of the model %.80s; predictions of two do not mix: give another folder with -o, or that model with -m", j.Dir, theirs)
			}
		}
	}
	return doctor.CheckOpenFiles(min(j.Cfg.Run.Workers, left))
}

// checkRepositories rejects rows whose repositories exist only in images if the sandbox uses no
// images: attempts would run in an empty folder.
func (j *Job) checkRepositories() error {
	if !envopen.IsHost(j.Cfg.Environment.Class) || j.isDemo() || j.emptyFolder {
		return nil
	}
	if err := envopen.CheckHostSettings(j.Cfg, j.Cfg.Environment.Class); err != nil {
		return err
	}
	var without []string
	for _, in := range j.Input.Rows {
		if in.Repo != "" {
			without = append(without, in.ID)
		}
	}
	if len(without) == 0 {
		return nil
	}
	return usage.Errorf("%d of %s have a repository that the %s environment does not have, the first is %s; use --environment-class docker, or --empty-folder to begin in an empty folder",
		len(without), text.Count(len(j.Input.Rows), "row"), j.Cfg.Environment.Class, without[0])
}

// canUseHost reports whether commands may run on this machine if no container engine responds.
// Only the demo with default settings may.
func (j *Job) canUseHost() bool {
	return j.isDemo() && envopen.IsDefaultClass(j.Cfg) && os.Getenv("DOCKER_HOST") == ""
}

// runBatch writes the manifest, prints what runs, and runs it.
func (j *Job) runBatch(ctx context.Context, said io.Writer, b *runner.Batch, environmentClass string) (runner.Summary, error) {
	config, err := j.Cfg.YAML()
	if err != nil {
		return runner.Summary{}, usage.Wrap(err)
	}
	if b.Header, err = setup.NewHeader(j.Cfg, environmentClass); err != nil {
		return runner.Summary{}, usage.Wrap(err)
	}
	can, err := j.tools.Manifest()
	if err != nil {
		return runner.Summary{}, usage.Wrap(err)
	}
	if c := j.Cfg.Agent.Compaction; can == nil && c != "" && c != "off" {
		can = &runner.Capabilities{Compaction: c}
	}
	changed, err := b.Folder.StartSession(runner.Manifest{
		Profile: j.Profile(), Capabilities: can,
		MiniVersion: version.Version,
		Dataset:     j.Input.Dataset,
		Model:       runner.ClassAndName{Class: j.Cfg.Model.Class, Name: modelopen.Name(j.Cfg)},
		Environment: runner.ClassAndName{Class: environmentClass, Name: j.Cfg.Environment.Image},
	}, config)
	if err != nil {
		return runner.Summary{}, usage.Wrap(err)
	}
	if err := printStart(said, j.commandName(), j.Cfg, j.Input.Dataset.Name, len(j.Input.Rows), environmentClass, b.Folder.Dir()); err != nil {
		return runner.Summary{}, usage.Wrap(err)
	}
	if len(changed) > 0 {
		b.Log.Emit(runner.Event{
			Type: runner.Warning,
			Text: "an earlier session in this folder had another " + strings.Join(changed, " and another ") + "; its results stay",
		})
	}
	return b.Run(ctx, j.Input.Rows)
}

// commandName returns the command that the user called.
func (j *Job) commandName() string {
	if j.Branch != nil {
		return "mini replay"
	}
	return "mini bench"
}

// printStart prints what is about to run.
func printStart(w io.Writer, command string, cfg *configs.Resolved, set string, n int, class, dir string) error {
	_, err := fmt.Fprintf(w, "%s: %s, %s, %s, %s sandboxes, model %s\nfiles go to %s\n",
		command, text.Printable(set), text.Count(n, "instance"), text.Count(cfg.Run.Workers, "worker"), class, text.Printable(modelopen.Name(cfg)), text.Printable(dir))
	if err == nil && cfg.Model.Class == "scripted" {
		_, err = fmt.Fprintln(w, "the replies are scripted: no model is called")
	}
	return err
}

// finish writes the summary and returns the error that the command ends with.
func (j *Job) finish(ctx context.Context, s cmdutil.Streams, sum runner.Summary, folder *runner.Folder, class string, failed error) error {
	if failed != nil && sum.Instances == 0 {
		return nil // nothing was run
	}
	err := folder.EndSession(sum)
	if j.JSON {
		res, failed := j.jsonResult(sum, folder.Dir())
		err = errors.Join(err, failed, json.NewEncoder(s.Out).Encode(res))
	} else {
		err = errors.Join(err, ui.PrintSummary(s.Out, sum, folder.Dir(), instanceIDs(j.Input.Rows)), j.printPending(s.Out), printKept(s.Out, sum.Kept, class, folder.Dir()))
	}
	switch {
	case err != nil || failed != nil:
		return err
	case j.isComplete(sum):
		return nil // even if interrupted at the end
	case ctx.Err() != nil:
		return fmt.Errorf("%w; %s", agent.ErrInterrupted, j.resumeHint(folder))
	case sum.Halt != nil:
		return cmdutil.WithCode(fmt.Errorf("%w; %s", sum.Halt, j.resumeHint(folder)), cmdutil.ExitIncomplete)
	}
	if sum.Drained {
		return fmt.Errorf("%w: the run was drained; %s", cmdutil.ErrIncomplete, j.resumeHint(folder))
	}
	if sum.Exhausted {
		return fmt.Errorf("%w: the run's budget is spent (%s); increase it and run again to resume", cmdutil.ErrIncomplete, budgetText(j.Cfg.Run))
	}
	return cmdutil.ErrIncomplete
}

// resumeHint tells how to continue an incomplete run. A branch cannot be resumed, only made
// again.
func (j *Job) resumeHint(folder *runner.Folder) string {
	if j.Branch != nil {
		return "the same command makes a new attempt, after the same step"
	}
	return "run again with -o " + folder.Dir() + " to resume"
}

// budgetText names the budgets of a run.
func budgetText(r configs.Run) string {
	var bounds []string
	if r.TotalCostLimit > 0 {
		bounds = append(bounds, fmt.Sprintf("run.total_cost_limit: $%v", r.TotalCostLimit))
	}
	if r.TotalCalls > 0 {
		bounds = append(bounds, fmt.Sprintf("run.total_calls: %d", r.TotalCalls))
	}
	return strings.Join(bounds, ", ")
}

// printPending prints the number of submissions without a verdict if there are no verdicts.
func (j *Job) printPending(w io.Writer) error {
	if j.evaluated == nil || len(j.evaluated.Records) > 0 || len(j.evaluated.Unfinished) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nno verdict yet on %s\n", text.Count(len(j.evaluated.Unfinished), "submission"))
	return err
}

// jsonResult returns what --json prints. If the score cannot be read it is omitted and the
// error returned.
func (j *Job) jsonResult(sum runner.Summary, dir string) (map[string]any, error) {
	res := map[string]any{"run": dir, "summary": sum}
	if j.evaluated == nil {
		return res, nil
	}
	res["evaluation"] = j.evaluated
	run, err := runner.ReadRun(dir)
	if err != nil {
		return res, err
	}
	g, err := ui.Summarize(run, instanceIDs(j.Input.Rows))
	for _, score := range g.Verdicts {
		if score.RunID == eval.DefaultRunID && score.HasRun {
			res["score"] = score
		}
	}
	return res, err
}

// folder returns the folder of the run.
func (o *Options) folder() string { return rows.RunFolder(o.Output, o.Subsets) }
