package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/version"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
)

// startSession writes the manifest.
func (a *activeJob) startSession() error {
	config, err := a.Config.YAML()
	if err != nil {
		return err
	}
	capabilities, err := a.tools.Manifest()
	if err != nil {
		return err
	}
	if c := a.Config.Agent.Compaction; capabilities == nil && c != "" && c != "off" {
		capabilities = &runner.Capabilities{Compaction: c}
	}
	a.changed, err = a.folder.StartSession(runner.Manifest{
		Profile: a.Profile(), Capabilities: capabilities, AgentFolderSHA256: a.agentFolderSHA256(),
		MiniVersion: version.Version,
		Dataset:     a.Input.Dataset,
		Model:       runner.ClassAndName{Class: a.Config.Model.Class, Name: modelopen.Name(a.Config)},
		Environment: runner.ClassAndName{Class: a.sandboxes.Class, Name: a.Config.Environment.Image},
	}, config)
	return err
}

// warnOfChanges emits a warning if an earlier session in the folder had other settings.
func (a *activeJob) warnOfChanges() {
	if len(a.changed) > 0 {
		a.log.Load().Emit(runner.Event{
			Type: runner.Warning,
			Text: "an earlier session in this folder had another " + strings.Join(a.changed, " and another ") + "; its results stay",
		})
	}
}

// commandName returns the name of the command that runs the job.
func (j *Job) commandName() string {
	if j.Branch != nil {
		return "mini replay"
	}
	return "mini bench"
}

// printStart prints the heading of jobs: what runs, the folder of its files, and which combinations
// the labels mean.
func printStart(w io.Writer, jobs []*Job, labels []string, class string) error {
	first := jobs[0]
	model := "model " + modelsText(jobs)
	if !first.Config.UsesModel() {
		model = "agent " + first.Config.Agent.Class
	}
	if first.combination != nil {
		model = modelsText(jobs)
	}
	_, err := fmt.Fprintf(w, "%s: %s, %s, %s, %s sandboxes, %s\nfiles go to %s\n",
		first.commandName(), text.Printable(first.Input.Dataset.Name), text.Count(len(first.Input.Rows), "instance"),
		text.Count(first.Config.Run.Workers, "worker"), class, text.Printable(model), text.Printable(first.topFolder()))
	if first.combination != nil && err == nil {
		var legend [][]string
		for i, j := range jobs {
			legend = append(legend, []string{"  " + labels[i], j.name()})
		}
		_, err = io.WriteString(w, cmdutil.FormatColumns(legend))
	}
	if err == nil && isScripted(jobs) {
		_, err = fmt.Fprintln(w, "the replies are scripted: no model is called")
	}
	return err
}

// finishJobs ends the sessions and prints the result. It returns the error that the command ends
// with, without runErr, the error of the run, which the caller adds.
func finishJobs(ctx context.Context, s cmdutil.Streams, all []*activeJob, runErr error) (err error) {
	for _, a := range all {
		err = errors.Join(err, a.folder.EndSession(a.sum))
	}
	switch {
	case all[0].combination != nil:
		err = errors.Join(err, printSweep(s, all))
	case all[0].JSON:
		res, scoreErr := all[0].jsonResult()
		err = errors.Join(err, scoreErr, json.NewEncoder(s.Out).Encode(res))
	default:
		err = errors.Join(err, all[0].printSummary(s.Out))
	}
	if err != nil || runErr != nil {
		return err
	}
	var reasons []error
	for _, a := range all {
		if reason := a.incomplete(ctx); reason != nil {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	// Report the first reason that the summary does not show.
	i := slices.IndexFunc(reasons, func(r error) bool { return r.Error() != cmdutil.ErrIncomplete.Error() })
	return reasons[max(0, i)]
}

// printSummary prints the summary of a single run.
func (a *activeJob) printSummary(w io.Writer) error {
	return errors.Join(ui.PrintSummary(w, a.sum, a.Dir, instanceIDs(a.Input.Rows), a.resumeHint()), a.printPending(w), printKept(w, a.sum.KeptSandboxes, a.sandboxes.Class, a.Dir))
}

// incomplete returns the error that reports why results are missing; nil if the job is complete,
// even if it was interrupted at the end.
func (a *activeJob) incomplete(ctx context.Context) error {
	switch {
	case a.isComplete(a.sum):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w; %s", agent.ErrInterrupted, a.resumeHint())
	case a.sum.Halt != nil:
		return cmdutil.WithCode(a.located(fmt.Errorf("%w; %s", a.sum.Halt, a.resumeHint())), cmdutil.ExitIncomplete)
	case a.sum.Drained:
		return a.located(fmt.Errorf("%w: the run was drained; %s", cmdutil.ErrIncomplete, a.resumeHint()))
	case a.sum.BudgetExhausted:
		return fmt.Errorf("%w: the run's budget is spent (%s); increase the limit; %s", cmdutil.ErrIncomplete, budgetText(a.Config.Run), a.resumeHint())
	}
	return cmdutil.ErrIncomplete
}

// resumeHint tells the user how to continue an incomplete run. A branch cannot be resumed, only
// repeated.
func (j *Job) resumeHint() string {
	if j.Branch != nil {
		return "the same command makes a new attempt, after the same step"
	}
	return "to continue:\n    " + j.resumeCommand()
}

// resumeCommand returns the command that continues the run: that of this process, with the folder.
func (j *Job) resumeCommand() string {
	args := slices.Clone(os.Args)
	if j.Output == "" {
		args = append(args, "-o", j.topFolder())
	}
	for i, arg := range args {
		args[i] = text.ShellQuote(arg)
	}
	return strings.Join(args, " ")
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

// jsonResult returns the value that --json prints for a run. If it cannot read the score, it omits the score
// and returns the error.
func (a *activeJob) jsonResult() (map[string]any, error) {
	res := map[string]any{"run": a.Dir, "summary": a.sum}
	if a.evaluated == nil && !a.hasTasks() {
		return res, nil
	}
	if a.evaluated != nil {
		res["evaluation"] = a.evaluated
	}
	run, err := runner.ReadRun(a.Dir)
	if err != nil {
		return res, err
	}
	summary, err := ui.Summarize(run, instanceIDs(a.Input.Rows))
	for _, score := range summary.Verdicts {
		if score.RunID == eval.DefaultRunID && score.HasRun {
			res["score"] = score
		}
	}
	return res, err
}

// folder returns the folder of the run.
func (o *Options) folder() string { return rows.RunFolder(o.Output, o.Subsets) }
