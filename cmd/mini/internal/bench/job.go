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
	Config *configs.Resolved
	Input  Input
	Agent  *agent.Agent
	Models *modelopen.Models
	Dir    string
	// EarlierRun is the run that Dir already contains. It has no instances if Dir contains no run.
	EarlierRun *runner.Run
	// tools are the optional tools; capabilities describes them for the prompts.
	tools        *setup.Tools
	capabilities agent.Capabilities
	// Progress is the kind of progress display.
	Progress string
	// Branch makes mini replay continue recorded attempts; nil for mini bench.
	Branch *runner.Branch
	// obstacle is the error that would prevent the batch from starting. Only dry runs set it.
	obstacle error
	// evaluated is the result of --eval; nil before the end, or if nothing was evaluated.
	evaluated *evaluate.Summary
}

// Run runs the batch and prints its result.
func (j *Job) Run(ctx, kill context.Context, s cmdutil.Streams) error {
	display := progress.New(j.Progress, s, progress.RunInfo{
		Dataset: j.Input.Dataset.Name, Model: modelopen.Name(j.Config), Folder: j.Dir, IDs: instanceIDs(j.Input.Rows), HasVerdicts: j.Config.Run.Eval,
	})
	defer display.Close()
	if j.Config.Run.Eval {
		if err := eval.PrepareCache(j.Config.Eval.Cache); err != nil {
			return err
		}
	}
	if j.events == "-" {
		return usage.Errorf("--events -: stdout has the results of a batch; name a file")
	}
	eventLog, err := cmdutil.OpenEventLog(j.events, s, envopen.Redact(j.Config))
	if err != nil {
		return err
	}
	defer eventLog.Close()
	if j.tools, err = setup.NewTools(ctx, j.Config); err != nil {
		return usage.Wrap(err)
	}
	defer j.tools.Close() //nolint:errcheck // connections end with the process
	if j.capabilities, err = j.tools.Capabilities(); err != nil {
		return usage.Wrap(err)
	}
	setup.WarnUnmentioned(s.Err, j.Agent, j.capabilities)
	// Connect to the engine before creating the folder: if no engine responds, no
	// empty run is left behind.
	var log *runner.EventLog
	sandboxes, err := envopen.New(ctx, kill, j.Config, j.isDemo(), j.canUseHost(), j.Dir, s.Err, progress.NewObserver(func(e runner.Event) { log.Emit(e) }))
	if err != nil {
		return err
	}
	sandboxes.ScrubOnce(j.Config)
	if err := sandboxes.CheckBudget(ctx, j.remainingRows()); err != nil {
		return errors.Join(usage.Wrap(err), sandboxes.Close())
	}
	folder, err := runner.Open(j.Dir)
	if err != nil {
		return errors.Join(usage.Wrap(err), sandboxes.Close())
	}
	defer folder.Close() //nolint:errcheck // the lock ends with the process
	folder.SetVerdictFilter(eval.IsSignedByUser)
	var ev *evaluation
	ctl := &controller{folder: folder, models: j.Models, images: sandboxes.Images}
	log = runner.NewLog(folder, func(e runner.Event) {
		display.Event(e)
		ev.countVerdict(e)
		ctl.tracker.Update(e)
	})
	log.Redact = envopen.Redact(j.Config)
	ctl.listen(log)
	defer ctl.server.Close() //nolint:errcheck // does nothing after the Close below
	display.Controller = ctl
	j.Models.OnLimits(progress.ProviderEvents(log.Emit))
	if ev, err = j.startEvaluation(ctx, s.Err, sandboxes, folder, log); err != nil {
		return errors.Join(err, sandboxes.Close())
	}
	batch, err := j.newBatch(sandboxes, folder, log)
	if err != nil {
		return errors.Join(usage.Wrap(err), sandboxes.Close())
	}
	cmdutil.PrintWarnings(s.Err, j.tools.Warnings())
	batch.Control = &ctl.control
	if eventLog != nil {
		batch.NewBus = eventLog.NewBus
	}
	if ev != nil {
		batch.OnSubmission = ev.submit
	}
	var sum runner.Summary
	if err = j.startSession(display.Writer(), batch, sandboxes.Class); err == nil {
		sum, err = batch.Run(ctx, j.Input.Rows)
	}
	if ev != nil {
		verdicts, failed := ev.wait(ctx, display.Writer(), err)
		j.evaluated, err = &verdicts, errors.Join(err, failed, folder.UpdateVerdicts())
	}
	err = errors.Join(err, ctl.server.Close())
	display.Close() // restore the screen before the summary
	err = errors.Join(err, sandboxes.Close(), j.finish(ctx, s, sum, folder, sandboxes.Class, err))
	return cmdutil.MarkDiskFull(err, sum.Instances > 0 && j.isComplete(sum))
}

// isComplete reports whether every instance has a result and, with --eval, whether every
// submission has a verdict.
func (j *Job) isComplete(sum runner.Summary) bool {
	return sum.Complete() && (j.evaluated == nil || j.evaluated.IsComplete())
}

// ReadEarlierRun reads the run in dir. It returns an empty run if dir contains none.
func ReadEarlierRun(dir string) (*runner.Run, error) {
	if err := runner.CheckFolder(dir); err != nil {
		return nil, err
	}
	run, err := runner.ReadRun(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, runner.ErrNotRunFolder) {
		return &runner.Run{}, nil
	}
	return run, err
}

// CheckFolder returns an error if the folder keeps results of another model (repetitions beyond
// the configured number do not count), or if the limit of open files is too low for the workers.
func (j *Job) CheckFolder() error {
	selected := map[string]bool{}
	for _, in := range j.Input.Rows {
		selected[in.ID] = true
	}
	left, k := len(selected), max(1, j.Config.Run.Attempts)
	for _, in := range j.EarlierRun.Instances {
		if j.RedoExisting && selected[in.ID] {
			continue // new results take the place of the earlier ones
		}
		if selected[in.ID] && in.MissingResults(k) == 0 {
			left--
		}
		for _, r := range in.Repetitions {
			if !r.Class.IsResult() || r.Repetition > k {
				continue
			}
			if model := in.Model(r.Attempt); model != "" && model != modelopen.Name(j.Config) {
				return usage.Errorf("%s has results of the model %.80s; a run cannot mix predictions of two models: pass another folder with -o, or that model with -m", j.Dir, model)
			}
		}
	}
	return doctor.CheckOpenFiles(min(j.Config.Run.Workers, left))
}

// checkRepositories returns an error if rows have a repository but the sandboxes use no images,
// which contain the repositories: attempts would begin in an empty folder. It also checks the
// settings of sandboxes without images. It checks nothing for the demo and with --empty-folder.
func (j *Job) checkRepositories() error {
	if !envopen.IsHostClass(j.Config.Environment.Class) || j.isDemo() || j.emptyFolder {
		return nil
	}
	if err := envopen.CheckHostSettings(j.Config, j.Config.Environment.Class); err != nil {
		return err
	}
	var lacking []string
	for _, in := range j.Input.Rows {
		if in.Repo != "" {
			lacking = append(lacking, in.ID)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return usage.Errorf("%d of %s have a repository that the %s environment does not have, the first is %s; use --environment-class docker, or --empty-folder to begin in an empty folder",
		len(lacking), text.Count(len(j.Input.Rows), "row"), j.Config.Environment.Class, lacking[0])
}

// canUseHost reports whether mini may run the commands on this machine if no container engine
// responds. It may do so only for the demo with the default environment class and without
// DOCKER_HOST.
func (j *Job) canUseHost() bool {
	return j.isDemo() && envopen.IsDefaultClass(j.Config) && os.Getenv("DOCKER_HOST") == ""
}

// newBatch assembles the batch from the configuration.
func (j *Job) newBatch(sandboxes *envopen.Sandboxes, folder *runner.Folder, log *runner.EventLog) (*runner.Batch, error) {
	newApprover, err := setup.NewApprovers(j.Config, sandboxes.Class)
	if err != nil {
		return nil, err
	}
	ignore, err := replay.ParseIgnore(j.Config.Replay.Ignore)
	if err != nil {
		return nil, err
	}
	header, err := setup.NewHeader(j.Config, sandboxes.Class)
	if err != nil {
		return nil, err
	}
	c := j.Config.Run
	return &runner.Batch{
		Folder: folder, Agent: j.Agent, Sandboxes: sandboxes, Models: j.Models, ModelName: modelopen.Name(j.Config), Header: header, Log: log,
		NewApprover: newApprover, NewTools: j.tools.ForAttempt,
		Workers: c.Workers, Repetitions: c.Attempts, MaxTries: c.MaxTries, MaxProviderFailures: c.MaxProviderFailures,
		Budget: runner.Budget{Cost: c.TotalCostLimit, Calls: c.TotalCallLimit},
		Redo:   j.RedoExisting, ResumeAttempts: c.ResumeAttempts, Force: j.force, Ignore: ignore, Branch: j.Branch,
		Sync: c.Fsync, KeepSandbox: envopen.KeepRule(c.Keep),
	}, nil
}

// startSession writes the manifest, prints a heading to w and warns if an earlier session in the
// folder had other settings.
func (j *Job) startSession(w io.Writer, b *runner.Batch, environmentClass string) error {
	config, err := j.Config.YAML()
	if err != nil {
		return usage.Wrap(err)
	}
	capabilities, err := j.tools.Manifest()
	if err != nil {
		return usage.Wrap(err)
	}
	if c := j.Config.Agent.Compaction; capabilities == nil && c != "" && c != "off" {
		capabilities = &runner.Capabilities{Compaction: c}
	}
	changed, err := b.Folder.StartSession(runner.Manifest{
		Profile: j.Profile(), Capabilities: capabilities,
		MiniVersion: version.Version,
		Dataset:     j.Input.Dataset,
		Model:       runner.ClassAndName{Class: j.Config.Model.Class, Name: modelopen.Name(j.Config)},
		Environment: runner.ClassAndName{Class: environmentClass, Name: j.Config.Environment.Image},
	}, config)
	if err != nil {
		return usage.Wrap(err)
	}
	if err := printStart(w, j.commandName(), j.Config, j.Input.Dataset.Name, len(j.Input.Rows), environmentClass, b.Folder.Dir()); err != nil {
		return usage.Wrap(err)
	}
	if len(changed) > 0 {
		b.Log.Emit(runner.Event{
			Type: runner.Warning,
			Text: "an earlier session in this folder had another " + strings.Join(changed, " and another ") + "; its results stay",
		})
	}
	return nil
}

// commandName returns the name of the command that runs the job.
func (j *Job) commandName() string {
	if j.Branch != nil {
		return "mini replay"
	}
	return "mini bench"
}

// printStart prints the heading of a run: what runs, and the folder of its files.
func printStart(w io.Writer, command string, cfg *configs.Resolved, set string, n int, class, dir string) error {
	_, err := fmt.Fprintf(w, "%s: %s, %s, %s, %s sandboxes, model %s\nfiles go to %s\n",
		command, text.Printable(set), text.Count(n, "instance"), text.Count(cfg.Run.Workers, "worker"), class, text.Printable(modelopen.Name(cfg)), text.Printable(dir))
	if err == nil && cfg.Model.Class == "scripted" {
		_, err = fmt.Fprintln(w, "the replies are scripted: no model is called")
	}
	return err
}

// finish ends the session and prints the result, if anything was run. It returns the error that the
// command ends with, without runErr, the error of the run, which the caller adds.
func (j *Job) finish(ctx context.Context, s cmdutil.Streams, sum runner.Summary, folder *runner.Folder, class string, runErr error) error {
	if runErr != nil && sum.Instances == 0 {
		return nil // nothing was run
	}
	err := folder.EndSession(sum)
	if j.JSON {
		res, scoreErr := j.jsonResult(sum, folder.Dir())
		err = errors.Join(err, scoreErr, json.NewEncoder(s.Out).Encode(res))
	} else {
		err = errors.Join(err, ui.PrintSummary(s.Out, sum, folder.Dir(), instanceIDs(j.Input.Rows)), j.printPending(s.Out), printKept(s.Out, sum.KeptSandboxes, class, folder.Dir()))
	}
	switch {
	case err != nil || runErr != nil:
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
	if sum.BudgetExhausted {
		return fmt.Errorf("%w: the run's budget is spent (%s); increase it and run again to resume", cmdutil.ErrIncomplete, budgetText(j.Config.Run))
	}
	return cmdutil.ErrIncomplete
}

// resumeHint tells the user how to continue an incomplete run. A branch cannot be resumed, only
// repeated.
func (j *Job) resumeHint(folder *runner.Folder) string {
	if j.Branch != nil {
		return "the same command makes a new attempt, after the same step"
	}
	return "run again with -o " + folder.Dir() + " to resume"
}

// budgetText lists the budgets of a run with their settings.
func budgetText(r configs.Run) string {
	var budgets []string
	if r.TotalCostLimit > 0 {
		budgets = append(budgets, fmt.Sprintf("run.total_cost_limit: $%v", r.TotalCostLimit))
	}
	if r.TotalCallLimit > 0 {
		budgets = append(budgets, fmt.Sprintf("run.total_calls: %d", r.TotalCallLimit))
	}
	return strings.Join(budgets, ", ")
}

// printPending prints the number of submissions without a verdict if no submission has one.
func (j *Job) printPending(w io.Writer) error {
	if j.evaluated == nil || len(j.evaluated.Records) > 0 || len(j.evaluated.Unfinished) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nno verdict yet on %s\n", text.Count(len(j.evaluated.Unfinished), "submission"))
	return err
}

// jsonResult returns the value that --json prints. If it cannot read the score, it omits the score
// and returns the error.
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
	summary, err := ui.Summarize(run, instanceIDs(j.Input.Rows))
	for _, score := range summary.Verdicts {
		if score.RunID == eval.DefaultRunID && score.HasRun {
			res["score"] = score
		}
	}
	return res, err
}

// folder returns the folder of the run.
func (o *Options) folder() string { return rows.RunFolder(o.Output, o.Subsets) }
