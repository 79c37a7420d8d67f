package bench

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

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
	for _, in := range j.Input.Rows {
		if err := j.evalConfig().CheckTask(evaluate.NewTask(in, modelopen.Name(j.Config), nil)); err != nil {
			if ids[in.ID] = true; why == "" {
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
	stop             context.CancelFunc
	pending          atomic.Int32 // number of queued submissions without a final verdict
}

// startEvaluation starts the evaluation of --eval. It returns nil without --eval, without a
// container engine, or if no row can be graded.
func (j *Job) startEvaluation(
	ctx context.Context, w io.Writer, sandboxes *envopen.Sandboxes, folder *runner.Folder, log *runner.EventLog, slots *semaphore.Weighted,
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
	evalSandboxes.Warn(ctx, w)
	ctx, ev.stop = context.WithCancel(ctx)
	c := j.evalConfig()
	c.Folder, c.Log, c.Sandboxes, c.Slots = folder, log, evalSandboxes, slots
	if c.SigningKey, err = eval.EnsureKey(ctx); err != nil {
		ev.stop()
		return nil, usage.Wrap(err)
	}
	if ev.evaluator, err = evaluate.Start(ctx, c); err != nil {
		ev.stop()
		return nil, usage.Wrap(err)
	}
	return ev, nil
}

// submit queues a submission for evaluation unless its instance is ungradable. It is the
// runner.Batch.OnSubmission of the batch.
func (ev *evaluation) submit(in datasets.Instance, repetition int, p trajectories.Prediction) {
	if ev.skip[in.ID] {
		return
	}
	ev.pending.Add(1)
	task := eval.NewTask(in, p)
	if ev.multipleAttempts {
		task.Repetition = repetition
	}
	if err := ev.evaluator.Submit(task); err != nil {
		ev.pending.Add(-1)
		ev.log.Emit(runner.Event{Type: runner.Warning, Instance: in.ID, Text: err.Error()})
	}
}

// countVerdict decreases the number of pending submissions if e is a final verdict.
func (ev *evaluation) countVerdict(e runner.Event) {
	if ev != nil && !e.WillRetry && e.Type == runner.Verdict {
		ev.pending.Add(-1)
	}
}

// wait waits for the pending verdicts. If runErr is set, it first cancels the evaluations.
func (ev *evaluation) wait(ctx context.Context, w io.Writer, runErr error) (evaluate.Summary, error) {
	if runErr != nil {
		ev.stop()
	}
	if n := int(ev.pending.Load()); n > 0 && runErr == nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(w, "mini: the agent has finished; %s still to evaluate\n", text.Count(n, "patch"))
	}
	defer ev.stop()
	return ev.evaluator.Wait()
}
