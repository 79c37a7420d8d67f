package bench

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

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

// ungradable returns the rows that cannot be graded and the reason for the first.
func (j *Job) ungradable() (ids map[string]bool, why string) {
	ids = map[string]bool{}
	for _, in := range j.Input.Rows {
		if err := j.evalConfig().CheckTask(evaluate.NewTask(in, modelopen.Name(j.Cfg), nil)); err != nil {
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

// printUngradable says before the run what --eval will not evaluate.
func (j *Job) printUngradable(w io.Writer) {
	if !j.Cfg.Run.Eval {
		return
	}
	if envopen.IsHost(j.Cfg.Environment.Class) {
		printNoVerdicts(w, j.Cfg.Environment.Class, j.Dir)
		return
	}
	if _, why := j.ungradable(); why != "" {
		_, _ = fmt.Fprintf(w, "mini: note: %s; the run continues without that verdict\n", text.Printable(why))
	}
}

func printNoVerdicts(w io.Writer, class, dir string) {
	_, _ = fmt.Fprintf(w, "mini: note: verdicts need containers, and the sandboxes are %s; run mini eval -p %s later\n",
		class, text.Printable(text.ShellQuote(dir)))
}

func (j *Job) evalConfig() evaluate.Config {
	c := eval.EvaluateConfig(j.Cfg)
	c.Selected, c.Editions = instanceIDs(j.Input.Rows), j.Input.Dataset.Editions
	return c
}

// evaluation evaluates submissions during the run.
type evaluation struct {
	evaluator        *evaluate.Evaluator
	log              *runner.Log
	skip             map[string]bool // ungradable instances
	multipleAttempts bool            // more than one per instance
	stop             context.CancelFunc
	pending          atomic.Int32 // number of submissions without a verdict
}

// startEvaluation starts the evaluation of --eval. It returns nil if there is nothing to
// evaluate.
func (j *Job) startEvaluation(
	ctx context.Context, w io.Writer, boxes *envopen.Sandboxes, folder *runner.Folder, log *runner.Log,
) (*evaluation, error) {
	if !j.Cfg.Run.Eval {
		return nil, nil
	}
	if boxes.Engine == nil {
		if !envopen.IsHost(j.Cfg.Environment.Class) { // else already printed
			printNoVerdicts(w, boxes.Class, j.Dir)
		}
		return nil, nil
	}
	g := &evaluation{log: log, multipleAttempts: j.Cfg.Run.Attempts > 1}
	if g.skip, _ = j.ungradable(); len(g.skip) == len(j.Input.Rows) {
		return nil, nil
	}
	sandboxes, err := eval.NewSandboxes(ctx, boxes, j.Cfg, j.Dir)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	sandboxes.Warn(ctx, w)
	ctx, g.stop = context.WithCancel(ctx)
	c := j.evalConfig()
	c.Folder, c.Log, c.Sandboxes = folder, log, sandboxes
	if c.Key, err = eval.EnsureKey(ctx); err != nil {
		g.stop()
		return nil, usage.Wrap(err)
	}
	if g.evaluator, err = evaluate.Start(ctx, c); err != nil {
		g.stop()
		return nil, usage.Wrap(err)
	}
	return g, nil
}

// submit implements runner.Batch.OnSubmission.
func (g *evaluation) submit(in datasets.Instance, repetition int, p trajectories.Prediction) {
	if g.skip[in.ID] {
		return
	}
	g.pending.Add(1)
	task := eval.NewTask(in, p)
	if g.multipleAttempts {
		task.Repetition = repetition
	}
	if err := g.evaluator.Submit(task); err != nil {
		g.pending.Add(-1)
		g.log.Emit(runner.Event{Type: runner.Warning, Instance: in.ID, Text: err.Error()})
	}
}

// countVerdict decreases the number of pending submissions.
func (g *evaluation) countVerdict(e runner.Event) {
	if g != nil && !e.WillRetry && e.Type == runner.Verdict {
		g.pending.Add(-1)
	}
}

// wait waits for the pending verdicts. If the run failed or was interrupted it starts no more
// evaluations.
func (g *evaluation) wait(ctx context.Context, w io.Writer, failed error) (evaluate.Summary, error) {
	if failed != nil {
		g.stop()
	}
	if n := int(g.pending.Load()); n > 0 && failed == nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(w, "mini: the agent has finished; %s still to evaluate\n", text.Count(n, "patch"))
	}
	defer g.stop()
	return g.evaluator.Wait()
}
