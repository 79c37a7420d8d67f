package cli

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// ungradable are the rows of a run that get no verdict, and why the first of
// them does not.
func (j *job) ungradable() (ids map[string]bool, why string) {
	ids = map[string]bool{}
	for _, in := range j.work.rows {
		if err := j.evalConfig().Check(evaluate.Prediction(in, modelName(j.cfg), nil)); err != nil {
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

// sayUngradable says before anything runs what --eval will not do.
func (j *job) sayUngradable(w io.Writer) {
	if !j.cfg.Run.Eval {
		return
	}
	if onHost(j.cfg.Environment.Class) {
		sayNoVerdicts(w, j.cfg.Environment.Class, j.dir)
		return
	}
	if _, why := j.ungradable(); why != "" {
		_, _ = fmt.Fprintf(w, "mini: note: %s; the run itself works, without a verdict there\n", report.Printable(why)) // only for people
	}
}

func sayNoVerdicts(w io.Writer, class, dir string) {
	_, _ = fmt.Fprintf(w, "mini: note: verdicts need containers, and the sandboxes are %s: the run itself works, and is not judged; mini eval -p %s does that later\n",
		class, report.Printable(report.ShellWord(dir))) // only for people
}

func (j *job) evalConfig() evaluate.Config {
	c := evalSettings(j.cfg)
	c.Selected, c.Editions = ids(j.work.rows), j.work.dataset.Editions
	return c
}

// judge evaluates what a run submits while the run goes on. The image of an
// instance stays from the agent's start to the verdict.
type judge struct {
	evaluator *evaluate.Evaluator
	boxes     evalBoxes
	agents    *sandboxes
	log       *runner.Log
	skip      map[string]bool // cannot be graded
	several   bool            // results of each instance
	stop      context.CancelFunc

	releasing sync.WaitGroup
	mu        sync.Mutex
	holds     map[string]func() // by instance
	pulling   atomic.Int32      // evaluations that wait for an image
	pending   atomic.Int32      // submissions without a verdict
}

// newJudge is nil where nothing is to be judged.
func (j *job) newJudge(
	ctx context.Context, w io.Writer, boxes *sandboxes, folder *runner.Folder, log *runner.Log,
) (*judge, error) {
	if !j.cfg.Run.Eval {
		return nil, nil
	}
	if boxes.engine == nil {
		if !onHost(j.cfg.Environment.Class) { // else it was said
			sayNoVerdicts(w, boxes.class, j.dir)
		}
		return nil, nil
	}
	g := &judge{agents: boxes, log: log, several: j.cfg.Run.Attempts > 1, holds: map[string]func(){}}
	if g.skip, _ = j.ungradable(); len(g.skip) == len(j.work.rows) {
		return nil, nil
	}
	var err error
	if g.boxes, err = boxes.evaluating(ctx, j.cfg, j.dir); err != nil {
		return nil, before(err)
	}
	g.boxes.warn(ctx, w)
	ctx, g.stop = context.WithCancel(ctx)
	c := j.evalConfig()
	c.Folder, c.Log, c.Sandboxes = folder, log, judging{g.boxes, g}
	if c.Key, err = makeVerdictKey(); err != nil {
		g.stop()
		return nil, before(err)
	}
	if g.evaluator, err = evaluate.Begin(ctx, c); err != nil {
		g.stop()
		return nil, before(err)
	}
	return g, nil
}

// Start implements runner.Sandboxes for the agent. Who is the last to need an
// image would else see it go, and come again for the verdict.
func (g *judge) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	g.hold(ctx, in)
	return g.agents.Start(ctx, in)
}

// Expect implements runner.Expecting.
func (g *judge) Expect(ctx context.Context, todo []datasets.Instance) (stop func()) {
	return g.agents.Expect(ctx, todo)
}

// submission implements runner.Batch.Submitted.
func (g *judge) submission(in datasets.Instance, sample int, p trajectories.Prediction) {
	if g.skip[in.ID] {
		return
	}
	g.pending.Add(1)
	task := prediction(in, p)
	if g.several {
		task.Sample = sample
	}
	if err := g.evaluator.Submit(task); err != nil {
		g.pending.Add(-1)
		g.release(in.ID)
		g.log.Emit(runner.Event{Type: runner.Warning, Instance: in.ID, Text: err.Error()})
	}
}

// event gives images back whose instance has its verdict, or will have none.
// It is quick.
func (g *judge) event(e runner.Event) {
	if g == nil || e.Again {
		return
	}
	switch e.Type {
	case runner.Verdict:
		g.pending.Add(-1)
		g.release(e.Instance)
	case runner.AttemptFinished:
		if e.Outcome != nil && !e.Outcome.Class.Counts() {
			g.release(e.Instance)
		}
	}
}

// hold keeps the image of an instance. While an evaluation waits for room for
// its own image nothing is held: what it waits for might be held for those
// behind it. An image that is not held can always be pulled again.
func (g *judge) hold(ctx context.Context, in datasets.Instance) {
	wanted := func() bool { return !g.skip[in.ID] && g.pulling.Load() == 0 && g.holds[in.ID] == nil }
	g.mu.Lock()
	ok := wanted()
	g.mu.Unlock()
	if !ok {
		return
	}
	release, err := g.boxes.images.Hold(ctx, evalNeed(g.boxes.base, in))
	if err != nil {
		return // the start has the same trouble, and says so
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !wanted() {
		g.releasing.Go(release)
		return
	}
	g.holds[in.ID] = release
}

// release gives the image of an instance back, behind the caller's back: that
// may mean removing images.
func (g *judge) release(id string) {
	g.mu.Lock()
	release := g.holds[id]
	delete(g.holds, id)
	g.mu.Unlock()
	if release != nil {
		g.releasing.Go(release)
	}
}

// letGo gives all images back.
func (g *judge) letGo() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, release := range g.holds {
		delete(g.holds, id)
		g.releasing.Go(release)
	}
}

// wait waits for the verdicts. What is not begun when the run has failed, or was
// interrupted, never is.
func (g *judge) wait(ctx context.Context, said io.Writer, failed error) (evaluate.Summary, error) {
	if failed != nil {
		g.stop()
	}
	if n := int(g.pending.Load()); n > 0 && failed == nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(said, "mini: the agent is done; %s still to be judged\n", report.Count(n, "patch")) // only for people
	}
	sum, err := g.evaluator.Wait()
	g.stop()
	g.letGo()
	g.releasing.Wait()
	return sum, err
}

// judging are the sandboxes of a judge's evaluations.
type judging struct {
	evalBoxes
	judge *judge
}

// Start implements evaluate.Sandboxes.
func (b judging) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	if _, here, err := b.images.Look(ctx, evalNeed(b.base, in)); err == nil && !here {
		b.judge.pulling.Add(1)
		defer b.judge.pulling.Add(-1)
		b.judge.letGo()
	}
	return b.evalBoxes.Start(ctx, in)
}
