package runner_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// desk is a run that goes on in a bubble, with somebody who gives orders. The
// commands of its attempts take until they are let go.
type desk struct {
	t       *testing.T
	dir     string
	batch   *runner.Batch
	control runner.Control

	mu     sync.Mutex
	gates  map[string]chan struct{}
	starts []string
	told   []runner.Event
	start  starter // nil: a room with a gate

	sum  runner.Summary
	err  error
	done chan struct{}
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, dir: filepath.Join(t.TempDir(), "run"), gates: map[string]chan struct{}{}, done: make(chan struct{})}
	d.batch = batch(t, d.dir, func(ctx context.Context, in datasets.Instance) (env.Environment, error) {
		d.mu.Lock()
		d.starts = append(d.starts, in.ID)
		gate := d.gates[in.ID]
		if gate == nil {
			gate = make(chan struct{})
			d.gates[in.ID] = gate
		}
		special := d.start
		d.mu.Unlock()
		if special != nil {
			return special(ctx, in)
		}
		return &gated{gate: gate}, nil
	})
	d.batch.Workers = 1
	d.batch.Control = &d.control
	d.batch.Log = runner.NewLog(d.batch.Folder, func(e runner.Event) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !e.Transient() {
			d.told = append(d.told, e)
		}
	})
	return d
}

// gated is a sandbox whose command ends when its gate is opened, with the work
// handed in.
type gated struct {
	room
	gate chan struct{}
}

func (g *gated) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if strings.Contains(c.Script, "rev-parse") {
		return env.Result{ExitCode: 1}, nil
	}
	select {
	case <-g.gate:
		return env.Result{Output: []byte("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\nthe patch\n")}, nil
	case <-ctx.Done():
		return env.Result{ExitCode: -1}, context.Cause(ctx)
	}
}

// run begins the batch and waits until nothing moves.
func (d *desk) run(ids ...string) {
	d.t.Helper()
	ctx := d.t.Context()
	go func() {
		defer close(d.done)
		d.sum, d.err = d.batch.Run(ctx, rows(ids...))
	}()
	synctest.Wait()
}

// order gives an order and waits until nothing moves.
func (d *desk) order(a runner.Action, who, want string) {
	d.t.Helper()
	said, err := d.control.Do(runner.Order{Action: a, Who: who, By: "test"})
	if err != nil {
		said = "error: " + err.Error()
	}
	if !strings.Contains(said, want) {
		d.t.Errorf("%s %s: %q, want %q", a, who, said, want)
	}
	synctest.Wait()
}

// free lets the commands of an instance end, this one's and all later ones.
func (d *desk) free(ids ...string) {
	d.mu.Lock()
	for _, id := range ids {
		if d.gates[id] == nil {
			d.gates[id] = make(chan struct{})
		}
		close(d.gates[id])
	}
	d.mu.Unlock()
	synctest.Wait()
}

// begun holds the sandboxes that were started so far against what is wanted.
func (d *desk) begun(want string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	starts := slices.Clone(d.starts)
	if d.batch.Workers > 1 { // which begin at once
		slices.Sort(starts)
	}
	if got := strings.Join(starts, " "); got != want {
		d.t.Errorf("begun: %s; want %s", got, want)
	}
}

// over says whether the run has ended.
func (d *desk) over() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// end waits for the end of the run and returns how the instances ended.
func (d *desk) end() map[string]string {
	d.t.Helper()
	synctest.Wait()
	select {
	case <-d.done:
	case <-time.After(time.Hour):
		d.t.Fatal("the run does not end")
	}
	if d.err != nil {
		d.t.Fatal(d.err)
	}
	got := map[string]string{}
	for id, r := range results(d.t, d.dir) {
		got[id] = fmt.Sprintf("%s %d/%d", r.ExitStatus, r.Attempt, r.Attempts)
	}
	if _, err := d.control.Do(runner.Order{Action: runner.Pause}); !errors.Is(err, runner.ErrNotRunning) {
		d.t.Errorf("after the end: %v", err)
	}
	if _, ok := d.control.Standing(); ok {
		d.t.Error("after the end it still stands")
	}
	sound(d.t, d.dir)
	return got
}

// orders are the events of what somebody wanted.
func (d *desk) orders() (all []runner.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.told {
		if e.Type == runner.Controlled {
			all = append(all, e)
		}
	}
	return all
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// bubble is a test with a clock of its own.
func bubble(t *testing.T, name string, f func(t *testing.T, d *desk)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, newDesk(t)) })
	})
}

func TestPause(t *testing.T) {
	bubble(t, "and resume", func(t *testing.T, d *desk) {
		d.run("a", "b", "c")
		d.order(runner.Pause, "", "paused: nothing more is started")
		d.order(runner.Pause, "", "paused already")
		d.free("a")
		d.begun("a")
		s, _ := d.control.Standing()
		same(t, runner.Standing{
			Paused: true, Total: 3, Done: 1, Working: []string{}, Waiting: []string{"b", "c"}, Ended: []string{"a"},
			Classes: map[trajectories.Class]int{trajectories.Submitted: 1},
		}, s)
		d.order(runner.Resume, "", "resumed")
		d.order(runner.Resume, "", "not paused")
		d.begun("a b")
		d.free("b", "c")
		same(t, map[string]string{"a": "Submitted 1/1", "b": "Submitted 1/1", "c": "Submitted 1/1"}, d.end())
		var told []string
		for _, e := range d.orders() {
			told = append(told, string(e.Action)+" by "+e.By)
		}
		same(t, []string{"pause by test", "resume by test"}, told)
	})
	bubble(t, "with nothing left", func(t *testing.T, d *desk) {
		d.run("a")
		d.order(runner.Pause, "", "paused")
		d.free("a")
		same(t, map[string]string{"a": "Submitted 1/1"}, d.end())
	})
	bubble(t, "then Ctrl-C", func(t *testing.T, d *desk) {
		ctx, stop := context.WithCancelCause(t.Context())
		go func() {
			defer close(d.done)
			d.sum, d.err = d.batch.Run(ctx, rows("a", "b"))
		}()
		synctest.Wait()
		d.order(runner.Pause, "", "paused")
		d.free("a")
		stop(agent.ErrInterrupted)
		same(t, map[string]string{"a": "Submitted 1/1"}, d.end())
	})
	bubble(t, "then the money is spent", func(t *testing.T, d *desk) {
		d.batch.Budget.Calls = 1
		d.run("a", "b")
		d.order(runner.Pause, "", "paused")
		d.free("a")
		if d.end(); !d.sum.Exhausted || d.sum.Drained {
			t.Errorf("%+v", d.sum)
		}
	})
	bubble(t, "holds back a further try, which is the first then", func(t *testing.T, d *desk) {
		d.start = fails("a", d)
		d.run("a", "b")
		d.order(runner.Pause, "", "paused") // while a waits for its second try
		time.Sleep(time.Minute)
		d.begun("a")
		d.start = nil
		d.order(runner.Resume, "", "resumed")
		d.begun("a a")
		d.free("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
	})
}

// fails cannot start sandboxes of an instance.
func fails(id string, d *desk) starter {
	return func(_ context.Context, in datasets.Instance) (env.Environment, error) {
		if in.ID == id {
			return nil, &env.Error{Status: env.StartFailed, Op: "start"}
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		return &gated{gate: d.gates[in.ID]}, nil
	}
}

func TestDrain(t *testing.T) {
	bubble(t, "ends with what runs", func(t *testing.T, d *desk) {
		d.run("a", "b")
		d.order(runner.Drain, "", "draining")
		d.order(runner.Drain, "", "draining already")
		d.order(runner.Requeue, "b", "goes to the end of the queue; but the run drains, and begins it only after a resume")
		d.free("a")
		same(t, map[string]string{"a": "Submitted 1/1"}, d.end())
		if !d.sum.Drained || d.sum.Unstarted != 1 || d.sum.Complete() {
			t.Errorf("%+v", d.sum)
		}
	})
	bubble(t, "with all begun is no drain", func(t *testing.T, d *desk) {
		d.run("a")
		d.order(runner.Drain, "", "draining")
		d.free("a")
		if d.end(); d.sum.Drained || !d.sum.Complete() {
			t.Errorf("%+v", d.sum)
		}
	})
	bubble(t, "then resume", func(t *testing.T, d *desk) {
		d.batch.Workers = 2
		d.run("a", "b", "c", "d")
		d.order(runner.Drain, "", "draining")
		d.free("a") // its worker has nothing to do, and does not leave
		d.begun("a b")
		d.order(runner.Resume, "", "resumed")
		d.begun("a b c")
		d.free("b", "c", "d")
		if d.end(); !d.sum.Complete() || d.sum.Drained {
			t.Errorf("%+v", d.sum)
		}
	})
	bubble(t, "of a paused run ends it at once", func(t *testing.T, d *desk) {
		d.run("a", "b")
		d.order(runner.Pause, "", "paused")
		d.free("a")
		d.order(runner.Drain, "", "draining")
		if !d.over() {
			t.Error("it goes on")
		}
		d.end()
	})
	bubble(t, "tries nothing again", func(t *testing.T, d *desk) {
		d.start = fails("a", d)
		d.run("a", "b")
		d.order(runner.Drain, "", "draining") // while a waits for its second try
		same(t, map[string]string{"a": "StartFailed 1/1"}, d.end())
	})
}

func TestKill(t *testing.T) {
	bubble(t, "one that runs", func(t *testing.T, d *desk) {
		d.run("a", "b")
		d.order(runner.Kill, "a", "a is killed: its attempt ends")
		d.order(runner.Kill, "a", "error: a has ended")
		d.begun("a b")
		d.free("b")
		same(t, map[string]string{"a": "Interrupted 1/1", "b": "Submitted 1/1"}, d.end())
		if r := results(t, d.dir)["a"]; r.Error != "killed (test)" {
			t.Errorf("it says %q", r.Error)
		}
	})
	bubble(t, "twice, while it ends", func(t *testing.T, d *desk) {
		gate := make(chan struct{})
		d.start = func(context.Context, datasets.Instance) (env.Environment, error) {
			return &room{block: true, closed: func() { <-gate }}, nil
		}
		d.run("a")
		d.order(runner.Kill, "a", "its attempt ends")
		d.order(runner.Kill, "a", "is ending already")
		close(gate)
		same(t, map[string]string{"a": "Interrupted 1/1"}, d.end())
		if n := len(d.orders()); n != 1 {
			t.Errorf("%d events", n)
		}
	})
	bubble(t, "one that waits", func(t *testing.T, d *desk) {
		d.run("a", "b", "c")
		d.order(runner.Kill, "b", "it is not started in this run")
		d.order(runner.Kill, "b", "was killed before")
		d.free("a", "c")
		same(t, map[string]string{"a": "Submitted 1/1", "c": "Submitted 1/1"}, d.end())
		d.begun("a c")
		if e := d.orders()[0]; e.Total != 2 || e.Instance != "b" {
			t.Errorf("%+v", e)
		}
	})
	bubble(t, "one whose sandbox is being started", func(t *testing.T, d *desk) {
		d.start = func(ctx context.Context, _ datasets.Instance) (env.Environment, error) {
			<-ctx.Done()
			return nil, &env.Error{Status: env.StartFailed, Op: "start", Err: ctx.Err()}
		}
		d.run("a")
		d.order(runner.Kill, "a", "its attempt ends")
		same(t, map[string]string{"a": "Interrupted 1/1"}, d.end())
	})
	bubble(t, "one that waits for its next try", func(t *testing.T, d *desk) {
		d.start = fails("a", d)
		d.run("a")
		d.order(runner.Kill, "a", "it is not tried again in this run")
		same(t, map[string]string{"a": "StartFailed 1/1"}, d.end())
	})
	bubble(t, "one that nobody knows", func(t *testing.T, d *desk) {
		d.run("a")
		_, err := d.control.Do(runner.Order{Action: runner.Kill, Who: "z"})
		unknown, ok := errors.AsType[*runner.UnknownError](err)
		if !ok || !slices.Equal(unknown.Known, []string{"a"}) {
			t.Errorf("%v", err)
		}
		d.order("dance", "", `error: there is no action "dance"`)
		d.free("a")
		d.end()
	})
}

func TestRequeue(t *testing.T) {
	bubble(t, "one that runs", func(t *testing.T, d *desk) {
		d.run("a", "b")
		d.order(runner.Requeue, "a", "is ended, and goes to the end of the queue")
		d.begun("a b")
		s, _ := d.control.Standing()
		same(t, []string{"a"}, s.Waiting)
		d.free("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
		d.begun("a b a")
		out, ok, err := trajectories.Last(filepath.Join(d.dir, "a", "attempts", "1", "journal.jsonl"))
		if !ok || err != nil || out.Class != trajectories.Interrupted || out.Error != "requeued (test)" {
			t.Errorf("the first attempt: %+v, %v", out, err)
		}
	})
	bubble(t, "one that has a result of this run", func(t *testing.T, d *desk) {
		var told []string
		d.batch.Submitted = func(in datasets.Instance, _ int, p trajectories.Prediction) {
			told = append(told, in.ID+" "+p.Patch)
		}
		d.run("a", "b")
		d.free("a")
		d.order(runner.Requeue, "a", "is tried again, at the end of the queue; what it has stays")
		d.order(runner.Requeue, "a", "goes to the end of the queue")
		d.free("b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
		d.begun("a b a")
		same(t, []string{"a the patch\n", "b the patch\n", "a the patch\n"}, told)
		if e := d.orders()[0]; e.Class != trajectories.Submitted || e.Total != 2 {
			t.Errorf("%+v", e)
		}
		if d.sum.Classes[trajectories.Submitted] != 2 {
			t.Errorf("%+v", d.sum)
		}
	})
	bubble(t, "one that had its result, and fails now", func(t *testing.T, d *desk) {
		var told []string
		d.batch.Submitted = func(in datasets.Instance, _ int, _ trajectories.Prediction) { told = append(told, in.ID) }
		d.free("a")
		d.run("a")
		d.end()
		d.start, d.done = fails("a", d), make(chan struct{})
		d.run("a", "b")
		d.order(runner.Pause, "", "paused") // so that it does not end before
		d.order(runner.Requeue, "a", "is tried again")
		if e := d.orders(); e[len(e)-1].Total != 2 || e[len(e)-1].Class != "" {
			t.Errorf("%+v", e[len(e)-1])
		}
		d.order(runner.Resume, "", "resumed")
		d.free("b")
		same(t, map[string]string{"a": "Submitted 1/4", "b": "Submitted 1/1"}, d.end()) // the result it had counts
		same(t, []string{"a", "a", "b"}, told)                                          // once for each run
	})
	bubble(t, "one that waits", func(_ *testing.T, d *desk) {
		d.run("a", "b", "c")
		d.order(runner.Requeue, "b", "goes to the end of the queue")
		d.free("a", "b", "c")
		d.end()
		d.begun("a c b")
	})
	bubble(t, "one that was killed", func(t *testing.T, d *desk) {
		d.run("a", "b")
		d.order(runner.Kill, "b", "not started")
		d.order(runner.Requeue, "b", "is in the queue again")
		d.order(runner.Kill, "a", "its attempt ends")
		d.order(runner.Requeue, "a", "is tried again")
		d.free("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
	})
	bubble(t, "one that waits for its next try", func(t *testing.T, d *desk) {
		d.start = fails("a", d)
		d.run("a", "b")
		d.start = nil
		d.order(runner.Requeue, "a", "goes to the end of the queue")
		d.begun("a b")
		d.free("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
	})
	bubble(t, "one that is closing, and kill it after all", func(t *testing.T, d *desk) {
		closing := make(chan struct{})
		d.start = func(context.Context, datasets.Instance) (env.Environment, error) {
			return &room{output: "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\nthe patch\n", closed: func() { <-closing }}, nil
		}
		d.run("a", "b") // a has handed in its work, and its sandbox is being closed
		d.order(runner.Requeue, "a", "is ended, and goes to the end of the queue")
		d.order(runner.Requeue, "a", "goes to the end of the queue already")
		d.order(runner.Kill, "a", "is killed: its attempt ends")
		d.order(runner.Requeue, "a", "is ended, and goes to the end of the queue")
		close(closing)
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
		d.begun("a b a")
	})
	bubble(t, "the last one", func(t *testing.T, d *desk) {
		d.run("a")
		d.order(runner.Requeue, "a", "is ended")
		d.begun("a a")
		d.free("a")
		same(t, map[string]string{"a": "Submitted 2/2"}, d.end())
	})
	bubble(t, "begins anew where others would go on inside", func(t *testing.T, d *desk) {
		d.batch.ResumeAttempts = true
		d.run("a")
		d.order(runner.Requeue, "a", "is ended")
		d.free("a")
		same(t, map[string]string{"a": "Submitted 2/2"}, d.end())
	})
}

// Samples are named by themselves or all at once, and counted as those who watch
// count them.
func TestControlOfSamples(t *testing.T) {
	bubble(t, "kill", func(t *testing.T, d *desk) {
		d.batch.Samples = 2
		d.run("a", "b")
		d.order(runner.Kill, "b#1", "b#1 is killed: it is not started")
		d.order(runner.Kill, "a", "a#1 is killed: its attempt ends, and its work is kept\na#2 is killed: it is not started in this run")
		d.order(runner.Requeue, "a#2", "a#2 is in the queue again")
		d.free("a", "b")
		d.end()
		same(t, map[trajectories.Class]int{trajectories.Interrupted: 1, trajectories.Submitted: 2}, d.sum.Classes)
		same(t, map[int]string{1: "interrupted 1", 2: "submitted 2"}, samplesOf(t, d.dir, "a"))
		same(t, map[int]string{2: "submitted 1"}, samplesOf(t, d.dir, "b"))
	})
}

// Many orders at once, from everywhere: the run comes to its end, each instance has
// its result, and no journal is damaged.
func TestControlInDisorder(t *testing.T) {
	bubble(t, "", func(t *testing.T, d *desk) {
		ids := []string{"a", "b", "c", "d", "e", "f"}
		d.batch.Workers, d.batch.Samples = 3, 2
		d.start = func(_ context.Context, in datasets.Instance) (env.Environment, error) {
			time.Sleep(7 * time.Millisecond) // so that orders meet attempts everywhere
			d.mu.Lock()
			defer d.mu.Unlock()
			return &gated{gate: d.gates[in.ID]}, nil
		}
		d.free(ids...)
		d.order(runner.Pause, "", "error: the run is over, or has not begun")
		go func() {
			defer close(d.done)
			d.sum, d.err = d.batch.Run(t.Context(), rows(ids...))
		}()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 30 {
					order := runner.Order{Action: []runner.Action{runner.Pause, runner.Kill, runner.Resume, runner.Requeue}[(n+i)%4], Who: ids[(n*i)%len(ids)]}
					_, _ = d.control.Do(order)
					d.control.Standing()
					time.Sleep(time.Duration(i) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		_, _ = d.control.Do(runner.Order{Action: runner.Resume})
		_, _ = d.control.Do(runner.Order{Action: runner.Requeue, Who: "a"})
		synctest.Wait()
		got := d.end()
		if len(got) == 0 || len(d.orders()) < 20 || d.sum.Asked() != 12 {
			t.Errorf("%v %+v", got, d.sum)
		}
		done := 0
		for _, n := range maps.All(d.sum.Classes) {
			done += n
		}
		if done+d.sum.Unstarted != 12 {
			t.Errorf("%+v", d.sum)
		}
	})
}
