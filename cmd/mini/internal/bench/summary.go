package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/version"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner/runs"
)

// startSession writes the manifest.
func (j *Job) startSession() error {
	config, err := j.Config.YAML()
	if err != nil {
		return err
	}
	capabilities, err := j.tools.Manifest()
	if err != nil {
		return err
	}
	if c := j.Config.Agent.Compaction; capabilities == nil && c != "" && c != "off" {
		capabilities = &runs.Capabilities{Compaction: c}
	}
	j.changed, err = j.folder.StartSession(runs.Manifest{
		Profile: j.Options.Profile(), Capabilities: capabilities, AgentFolderSHA256: j.agentFolderSHA256(),
		MiniVersion: version.Version, Command: j.recordedCommand(),
		Dataset:     j.Input.Dataset,
		Model:       runs.ClassAndName{Class: j.Config.Model.Class, Name: modelopen.Name(j.Config)},
		Environment: runs.ClassAndName{Class: j.sandboxes.Class, Name: j.Config.Environment.Image},
	}, config)
	return err
}

// printStart prints the heading of jobs: what runs, the folder of its files, and which combinations
// the labels mean.
func printStart(w io.Writer, jobs []*Job) error {
	first := jobs[0]
	command, model := "mini bench", "model "+modelsText(jobs)
	if first.Branch != nil {
		command = "mini replay"
	}
	switch {
	case first.combination != nil:
		model = modelsText(jobs)
	case !first.Config.UsesModel():
		model = "agent " + first.Config.Agent.Class
	}
	_, err := fmt.Fprintf(w, "%s: %s, %s, %s, %s, %s\nfiles go to %s\n",
		command, text.Printable(first.Input.Dataset.Name), text.Count(len(first.Input.Rows), "instance"),
		text.Count(first.Config.Run.Workers, "worker"), first.sandboxes.Heading(), text.Printable(model), text.Printable(first.topFolder()))
	if first.combination != nil && err == nil {
		var legend [][]string
		for _, j := range jobs {
			legend = append(legend, []string{"  " + j.label, j.name()})
		}
		d := &doc.Doc{}
		d.Table("ll", legend)
		err = d.WriteText(w, math.MaxInt)
	}
	if err == nil && !slices.ContainsFunc(jobs, func(j *Job) bool { return j.Config.Model.Class != "scripted" }) {
		_, err = fmt.Fprintln(w, "the replies are scripted: no model is called")
	}
	return err
}

// finishJobs ends the sessions and prints the result. It returns the error that the command ends
// with, without runErr, the error of the run, which the caller adds.
func finishJobs(ctx context.Context, a *app.App, all []*Job, runErr error) (err error) {
	for _, j := range all {
		err = errors.Join(err, j.folder.EndSession(j.sum))
	}
	switch {
	case all[0].combination != nil:
		err = errors.Join(err, printSweep(a, all))
	case all[0].Options.JSON:
		res, scoreErr := all[0].jsonResult()
		err = errors.Join(err, scoreErr, json.NewEncoder(a.Out).Encode(res))
	default:
		j := all[0]
		err = errors.Join(err, ui.PrintSummary(a.Out, j.sum, j.Dir, instanceIDs(j.Input.Rows), j.resumeHint()))
		if v := j.evaluated; v != nil && len(v.Records) == 0 && len(v.Unfinished) > 0 {
			_, printErr := fmt.Fprintf(a.Out, "\nno verdict yet on %s\n", text.Count(len(v.Unfinished), "submission"))
			err = errors.Join(err, printErr)
		}
		err = errors.Join(err, j.printKept(a.Out))
	}
	if err != nil || runErr != nil {
		return err
	}
	var reasons []error
	for _, j := range all {
		if reason := j.incomplete(ctx); reason != nil {
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

// incomplete returns the error that reports why results are missing; nil if the job is complete,
// even if it was interrupted at the end.
func (j *Job) incomplete(ctx context.Context) error {
	switch {
	case j.isComplete():
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w; %s", agent.ErrInterrupted, j.resumeHint())
	case j.sum.Halt != nil:
		return cmdutil.WithCode(j.located(fmt.Errorf("%w; %s", j.sum.Halt, j.resumeHint())), cmdutil.ExitIncomplete)
	case j.sum.Drained:
		return j.located(fmt.Errorf("%w: the run was drained; %s", cmdutil.ErrIncomplete, j.resumeHint()))
	case j.sum.BudgetExhausted:
		var budgets, doubled []string
		if cost := j.Config.Run.TotalCostLimit; cost > 0 {
			budgets, doubled = append(budgets, fmt.Sprintf("run.total_cost_limit: $%v", cost)), append(doubled, "--total-cost-limit", fmt.Sprint(2*cost))
		}
		if calls := j.Config.Run.TotalCallLimit; calls > 0 {
			budgets, doubled = append(budgets, fmt.Sprintf("run.total_calls: %d", calls)), append(doubled, "--total-calls", fmt.Sprint(2*calls))
		}
		return fmt.Errorf("%w: the run's budget is spent (%s); to continue with twice as much:\n    %s",
			cmdutil.ErrIncomplete, strings.Join(budgets, ", "), j.resumeCommand(doubled...))
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

// resumeCommand returns the command that continues the run, with further arguments.
func (j *Job) resumeCommand(further ...string) string {
	args := append([]string{os.Args[0]}, j.resumeArguments(further...)...)
	for i, arg := range args {
		args[i] = text.ShellQuote(arg)
	}
	return strings.Join(args, " ")
}

// resumeArguments returns the arguments of this process, with the folder of the run and further arguments.
func (j *Job) resumeArguments(further ...string) []string {
	args := slices.Concat(os.Args[1:], further)
	if j.Options.Output == "" && j.combination == nil {
		args = append(args, "-o", j.topFolder())
	}
	return args
}

// mayBeSecret matches arguments that may contain a key. Keys must not get into files.
var mayBeSecret = lazyregexp.New(`(?i)header|secret|token|password|bearer|\benv\b|kwargs|://[^/]*@`)

// recordedCommand returns the arguments that continue the run, for run.json; nil if they may contain a key, or
// if the run cannot be continued.
func (j *Job) recordedCommand() []string {
	args := j.resumeArguments()
	all := []byte(strings.Join(args, " "))
	if j.Branch != nil || j.service != nil || mayBeSecret.Match(all) || !bytes.Equal(envopen.Redact(j.Config)(all), all) {
		return nil
	}
	return args
}

// jsonResult returns the value that --json prints for a run. If it cannot read the score, it omits the score
// and returns the error.
func (j *Job) jsonResult() (map[string]any, error) {
	res := map[string]any{"run": j.Dir, "summary": j.sum}
	if j.evaluated == nil && !j.Options.hasTasks() {
		return res, nil
	}
	if j.evaluated != nil {
		res["evaluation"] = j.evaluated
	}
	run, err := runs.Read(j.Dir)
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

// printKept prints the number of attempts with kept sandboxes. It adds how to open and remove the
// containers or, without containers, where mini has named the folders.
func (j *Job) printKept(w io.Writer) error {
	if j.sum.KeptSandboxes == 0 {
		return nil
	}
	hint := "their folders are named above, and in events.jsonl"
	if j.sandboxes.Class == "docker" {
		hint = fmt.Sprintf("mini shell --run %[1]s INSTANCE opens one, mini clean --kept --run %[1]s removes them", text.ShellQuote(j.Dir))
	}
	_, err := fmt.Fprintf(w, "\nkept   %s; %s\n", text.Count(j.sum.KeptSandboxes, "attempt"), hint)
	return err
}

// modelsText names the model of the jobs, or the number of combinations.
func modelsText(jobs []*Job) string {
	if jobs[0].combination != nil {
		return combinationsText(len(jobs))
	}
	return modelopen.Name(jobs[0].Config)
}
