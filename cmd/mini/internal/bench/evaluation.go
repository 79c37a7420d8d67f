package bench

import (
	"context"
	"fmt"
	"io"

	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/datasets"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/trajectories"
)

// ungradable returns the ids of the rows that cannot be graded, and the reason for the first one
// with the number of the others.
func (j *Job) ungradable() (ids map[string]bool, why string) {
	ids = map[string]bool{}
	tasks := make([]evaluate.Task, len(j.Input.Rows))
	for i, in := range j.Input.Rows {
		tasks[i] = evaluate.NewTask(in, modelopen.Name(j.Config), nil)
	}
	for i, err := range j.evalConfig().CheckTasks(tasks) {
		if err != nil {
			if ids[tasks[i].Instance.ID] = true; why == "" {
				why = err.Error()
			}
		}
	}
	if len(ids) > 1 {
		why += fmt.Sprintf(" (and %d more like it)", len(ids)-1)
	}
	return ids, why
}

// printUngradable prints a note if --eval cannot evaluate some instances. It is called before the
// run.
func (j *Job) printUngradable(w io.Writer) {
	if !j.Config.Run.Eval {
		return
	}
	if envopen.IsHostClass(j.Config.Environment.Class) {
		printNoVerdicts(w, j.Config.Environment.Class, j.nameForNotes())
		return
	}
	if _, why := j.ungradable(); why != "" {
		_, _ = fmt.Fprintf(w, "mini: note: %s; the run continues without that verdict\n", text.Printable(why))
	}
}

// printNoVerdicts prints a note that sandboxes of class do not allow verdicts during the run.
func printNoVerdicts(w io.Writer, class, dir string) {
	_, _ = fmt.Fprintf(w, "mini: note: verdicts need containers, and the sandboxes are %s; run mini eval -p %s later\n",
		class, text.Printable(text.ShellQuote(dir)))
}

// evalConfig returns the configuration of the evaluation without folder, log, sandboxes and
// signing key.
func (j *Job) evalConfig() evaluate.Config {
	c := eval.EvaluateConfig(j.Config)
	c.Selected, c.Editions = instanceIDs(j.Input.Rows), j.Input.Dataset.Editions
	return c
}

// evaluation evaluates submissions during the run.
type evaluation struct {
	evaluator        *evaluate.Evaluator
	log              *runner.EventLog
	skip             map[string]bool // ids of ungradable instances
	multipleAttempts bool            // more than one attempt per instance
}

// openEvaluation opens the evaluation of --eval. It returns nil without --eval, without a
// container engine, or if no row can be graded.
func (j *Job) openEvaluation(
	ctx context.Context, w io.Writer, sandboxes *envopen.Sandboxes, folder *runner.Folder, log *runner.EventLog,
) (*evaluation, error) {
	if !j.Config.Run.Eval {
		return nil, nil
	}
	if !sandboxes.HasImages() {
		if !envopen.IsHostClass(j.Config.Environment.Class) { // otherwise printUngradable has printed it
			printNoVerdicts(w, sandboxes.Class, j.nameForNotes())
		}
		return nil, nil
	}
	ev := &evaluation{log: log, multipleAttempts: j.Config.Run.Attempts > 1}
	if ev.skip, _ = j.ungradable(); len(ev.skip) == len(j.Input.Rows) {
		return nil, nil
	}
	evalSandboxes, err := eval.NewSandboxes(ctx, sandboxes, j.Config, j.Dir)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	c := j.evalConfig()
	c.Folder, c.Log, c.Sandboxes = folder, log, evalSandboxes
	if c.SigningKey, err = eval.EnsureKey(ctx); err != nil {
		return nil, usage.Wrap(err)
	}
	if ev.evaluator, err = evaluate.Open(c); err != nil {
		return nil, usage.Wrap(err)
	}
	return ev, nil
}

// job returns the job that evaluates a submission, or nil if its instance is ungradable. It is
// the runner.Batch.Evaluate of the batch.
func (ev *evaluation) job(in datasets.Instance, repetition int, p trajectories.Prediction) runner.Work {
	if ev.skip[in.ID] {
		return nil
	}
	task := eval.NewTask(in, p)
	if ev.multipleAttempts {
		task.Repetition = repetition
	}
	w, err := ev.evaluator.Job(task)
	if err != nil {
		ev.log.Emit(runner.Event{Type: runner.Warning, Instance: in.ID, Text: err.Error()})
		return nil
	}
	return w
}

// printPending prints how many patches are still to evaluate when the agent has finished.
func printPending(w io.Writer, pending int) {
	if pending > 0 {
		_, _ = fmt.Fprintf(w, "mini: the agent has finished; %s still to evaluate\n", text.Count(pending, "patch"))
	}
}
