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

// controlledRun is a run in a bubble that gets requests. Its commands run until they are
// released.
type controlledRun struct {
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

func newDesk(t *testing.T) *controlledRun {
	d := &controlledRun{t: t, dir: filepath.Join(t.TempDir(), "run"), gates: map[string]chan struct{}{}, done: make(chan struct{})}
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
		return &gatedSandbox{gate: gate}, nil
	})
	d.batch.Workers = 1
	d.batch.Control = &d.control
	d.batch.Log = runner.NewLog(d.batch.Folder, func(e runner.Event) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !e.IsTransient() {
			d.told = append(d.told, e)
		}
	})
	return d
}

// gatedSandbox is a sandbox whose command waits for its gate and then submits.
type gatedSandbox struct {
	fakeSandbox
	gate chan struct{}
}

func (g *gatedSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
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

// run starts the batch and waits until it blocks.
func (d *controlledRun) run(ids ...string) {
	d.t.Helper()
	ctx := d.t.Context()
	go func() {
		defer close(d.done)
		d.sum, d.err = d.batch.Run(ctx, rows(ids...))
	}()
	synctest.Wait()
}

// request sends a request and waits until the run blocks.
func (d *controlledRun) request(a runner.Action, who, want string) {
	d.t.Helper()
	said, err := d.control.Do(runner.ControlRequest{Action: a, TaskID: who, Source: "test"})
	if err != nil {
		said = "error: " + err.Error()
	}
	if !strings.Contains(said, want) {
		d.t.Errorf("%s %s: %q, want %q", a, who, said, want)
	}
	synctest.Wait()
}

// release releases the commands of an instance, now and later.
func (d *controlledRun) release(ids ...string) {
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

// checkStarted checks which sandboxes were started so far.
func (d *controlledRun) checkStarted(want string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	starts := slices.Clone(d.starts)
	if d.batch.Workers > 1 { // that start together
		slices.Sort(starts)
	}
	if got := strings.Join(starts, " "); got != want {
		d.t.Errorf("begun: %s; want %s", got, want)
	}
}

// ended reports whether the run has ended.
func (d *controlledRun) ended() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// end waits for the run and returns the outcomes of the instances.
func (d *controlledRun) end() map[string]string {
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
	if _, err := d.control.Do(runner.ControlRequest{Action: runner.Pause}); !errors.Is(err, runner.ErrNotRunning) {
		d.t.Errorf("after the end: %v", err)
	}
	if _, ok := d.control.QueueStatus(); ok {
		d.t.Error("after the end it still stands")
	}
	checkJournals(d.t, d.dir)
	return got
}

// requestEvents returns the events of requests.
func (d *controlledRun) requestEvents() (all []runner.Event) {
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

// bubble runs a test with a fake clock.
func bubble(t *testing.T, name string, f func(t *testing.T, d *controlledRun)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, newDesk(t)) })
	})
}

func TestPause(t *testing.T) {
	bubble(t, "and resume", func(t *testing.T, d *controlledRun) {
		d.run("a", "b", "c")
		d.request(runner.Pause, "", "paused: running attempts continue")
		d.request(runner.Pause, "", "already paused")
		d.release("a")
		d.checkStarted("a")
		s, _ := d.control.QueueStatus()
		same(t, runner.QueueStatus{
			Paused: true, Total: 3, Done: 1, Working: []string{}, Waiting: []string{"b", "c"}, Ended: []string{"a"},
			Classes: map[trajectories.Class]int{trajectories.Submitted: 1},
		}, s)
		d.request(runner.Resume, "", "resumed")
		d.request(runner.Resume, "", "not paused")
		d.checkStarted("a b")
		d.release("b", "c")
		same(t, map[string]string{"a": "Submitted 1/1", "b": "Submitted 1/1", "c": "Submitted 1/1"}, d.end())
		var told []string
		for _, e := range d.requestEvents() {
			told = append(told, string(e.Action)+" by "+e.Source)
		}
		same(t, []string{"pause by test", "resume by test"}, told)
	})
	bubble(t, "with nothing left", func(t *testing.T, d *controlledRun) {
		d.run("a")
		d.request(runner.Pause, "", "paused")
		d.release("a")
		same(t, map[string]string{"a": "Submitted 1/1"}, d.end())
	})
	bubble(t, "then Ctrl-C", func(t *testing.T, d *controlledRun) {
		ctx, stop := context.WithCancelCause(t.Context())
		go func() {
			defer close(d.done)
			d.sum, d.err = d.batch.Run(ctx, rows("a", "b"))
		}()
		synctest.Wait()
		d.request(runner.Pause, "", "paused")
		d.release("a")
		stop(agent.ErrInterrupted)
		same(t, map[string]string{"a": "Submitted 1/1"}, d.end())
	})
	bubble(t, "then the money is spent", func(t *testing.T, d *controlledRun) {
		d.batch.Budget.Calls = 1
		d.run("a", "b")
		d.request(runner.Pause, "", "paused")
		d.release("a")
		if d.end(); !d.sum.Exhausted || d.sum.Drained {
			t.Errorf("%+v", d.sum)
		}
	})
	bubble(t, "holds back a further try, which is the first then", func(t *testing.T, d *controlledRun) {
		d.start = fails("a", d)
		d.run("a", "b")
		d.request(runner.Pause, "", "paused") // while a waits for its second try
		time.Sleep(time.Minute)
		d.checkStarted("a")
		d.start = nil
		d.request(runner.Resume, "", "resumed")
		d.checkStarted("a a")
		d.release("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
	})
}

// fails makes sandboxes of an instance fail to start.
func fails(id string, d *controlledRun) starter {
	return func(_ context.Context, in datasets.Instance) (env.Environment, error) {
		if in.ID == id {
			return nil, &env.Error{Status: env.StartFailed, Op: "start"}
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		return &gatedSandbox{gate: d.gates[in.ID]}, nil
	}
}

func TestDrain(t *testing.T) {
	bubble(t, "ends with what runs", func(t *testing.T, d *controlledRun) {
		d.run("a", "b")
		d.request(runner.Drain, "", "draining")
		d.request(runner.Drain, "", "already draining")
		d.request(runner.Requeue, "b", "is moved to the end of the queue; the run is draining and starts it only after a resume")
		d.release("a")
		same(t, map[string]string{"a": "Submitted 1/1"}, d.end())
		if !d.sum.Drained || d.sum.Unstarted != 1 || d.sum.Complete() {
			t.Errorf("%+v", d.sum)
		}
	})
	bubble(t, "with all begun is no drain", func(t *testing.T, d *controlledRun) {
		d.run("a")
		d.request(runner.Drain, "", "draining")
		d.release("a")
		if d.end(); d.sum.Drained || !d.sum.Complete() {
			t.Errorf("%+v", d.sum)
		}
	})
	bubble(t, "then resume", func(t *testing.T, d *controlledRun) {
		d.batch.Workers = 2
		d.run("a", "b", "c", "d")
		d.request(runner.Drain, "", "draining")
		d.release("a") // its worker is idle but stays
		d.checkStarted("a b")
		d.request(runner.Resume, "", "resumed")
		d.checkStarted("a b c")
		d.release("b", "c", "d")
		if d.end(); !d.sum.Complete() || d.sum.Drained {
			t.Errorf("%+v", d.sum)
		}
	})
	bubble(t, "of a paused run ends it at once", func(t *testing.T, d *controlledRun) {
		d.run("a", "b")
		d.request(runner.Pause, "", "paused")
		d.release("a")
		d.request(runner.Drain, "", "draining")
		if !d.ended() {
			t.Error("it goes on")
		}
		d.end()
	})
	bubble(t, "tries nothing again", func(t *testing.T, d *controlledRun) {
		d.start = fails("a", d)
		d.run("a", "b")
		d.request(runner.Drain, "", "draining") // while a waits for its second try
		same(t, map[string]string{"a": "StartFailed 1/1"}, d.end())
	})
}

func TestKill(t *testing.T) {
	bubble(t, "one that runs", func(t *testing.T, d *controlledRun) {
		d.run("a", "b")
		d.request(runner.Kill, "a", "a is killed: its attempt ends")
		d.request(runner.Kill, "a", "error: a has ended")
		d.checkStarted("a b")
		d.release("b")
		same(t, map[string]string{"a": "Interrupted 1/1", "b": "Submitted 1/1"}, d.end())
		if r := results(t, d.dir)["a"]; r.Error != "killed (test)" {
			t.Errorf("it says %q", r.Error)
		}
	})
	bubble(t, "twice, while it ends", func(t *testing.T, d *controlledRun) {
		gate := make(chan struct{})
		d.start = func(context.Context, datasets.Instance) (env.Environment, error) {
			return &fakeSandbox{block: true, closed: func() { <-gate }}, nil
		}
		d.run("a")
		d.request(runner.Kill, "a", "its attempt ends")
		d.request(runner.Kill, "a", "is already ending")
		close(gate)
		same(t, map[string]string{"a": "Interrupted 1/1"}, d.end())
		if n := len(d.requestEvents()); n != 1 {
			t.Errorf("%d events", n)
		}
	})
	bubble(t, "one that waits", func(t *testing.T, d *controlledRun) {
		d.run("a", "b", "c")
		d.request(runner.Kill, "b", "it will not start in this run")
		d.request(runner.Kill, "b", "was already killed")
		d.release("a", "c")
		same(t, map[string]string{"a": "Submitted 1/1", "c": "Submitted 1/1"}, d.end())
		d.checkStarted("a c")
		if e := d.requestEvents()[0]; e.Total != 2 || e.Instance != "b" {
			t.Errorf("%+v", e)
		}
	})
	bubble(t, "one whose sandbox is being started", func(t *testing.T, d *controlledRun) {
		d.start = func(ctx context.Context, _ datasets.Instance) (env.Environment, error) {
			<-ctx.Done()
			return nil, &env.Error{Status: env.StartFailed, Op: "start", Err: ctx.Err()}
		}
		d.run("a")
		d.request(runner.Kill, "a", "its attempt ends")
		same(t, map[string]string{"a": "Interrupted 1/1"}, d.end())
	})
	bubble(t, "one that waits for its next try", func(t *testing.T, d *controlledRun) {
		d.start = fails("a", d)
		d.run("a")
		d.request(runner.Kill, "a", "it will not be retried in this run")
		same(t, map[string]string{"a": "StartFailed 1/1"}, d.end())
	})
	bubble(t, "one that nobody knows", func(t *testing.T, d *controlledRun) {
		d.run("a")
		_, err := d.control.Do(runner.ControlRequest{Action: runner.Kill, TaskID: "z"})
		unknown, ok := errors.AsType[*runner.UnknownTaskError](err)
		if !ok || !slices.Equal(unknown.Known, []string{"a"}) {
			t.Errorf("%v", err)
		}
		d.request("dance", "", `error: unknown action "dance"`)
		d.release("a")
		d.end()
	})
}

func TestRequeue(t *testing.T) {
	bubble(t, "one that runs", func(t *testing.T, d *controlledRun) {
		d.run("a", "b")
		d.request(runner.Requeue, "a", "is stopped and requeued")
		d.checkStarted("a b")
		s, _ := d.control.QueueStatus()
		same(t, []string{"a"}, s.Waiting)
		d.release("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
		d.checkStarted("a b a")
		out, ok, err := trajectories.ReadOutcome(filepath.Join(d.dir, "a", "attempts", "1", "journal.jsonl"))
		if !ok || err != nil || out.Class != trajectories.Interrupted || out.Error != "requeued (test)" {
			t.Errorf("the first attempt: %+v, %v", out, err)
		}
	})
	bubble(t, "one that has a result of this run", func(t *testing.T, d *controlledRun) {
		var told []string
		d.batch.OnSubmission = func(in datasets.Instance, _ int, p trajectories.Prediction) {
			told = append(told, in.ID+" "+p.Patch)
		}
		d.run("a", "b")
		d.release("a")
		d.request(runner.Requeue, "a", "is requeued; its earlier attempts are kept")
		d.request(runner.Requeue, "a", "is moved to the end of the queue")
		d.release("b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
		d.checkStarted("a b a")
		same(t, []string{"a the patch\n", "b the patch\n", "a the patch\n"}, told)
		if e := d.requestEvents()[0]; e.Class != trajectories.Submitted || e.Total != 2 {
			t.Errorf("%+v", e)
		}
		if d.sum.Classes[trajectories.Submitted] != 2 {
			t.Errorf("%+v", d.sum)
		}
	})
	bubble(t, "one that had its result, and fails now", func(t *testing.T, d *controlledRun) {
		var told []string
		d.batch.OnSubmission = func(in datasets.Instance, _ int, _ trajectories.Prediction) { told = append(told, in.ID) }
		d.release("a")
		d.run("a")
		d.end()
		d.start, d.done = fails("a", d), make(chan struct{})
		d.run("a", "b")
		d.request(runner.Pause, "", "paused") // keeps the run from ending
		d.request(runner.Requeue, "a", "is requeued")
		if e := d.requestEvents(); e[len(e)-1].Total != 2 || e[len(e)-1].Class != "" {
			t.Errorf("%+v", e[len(e)-1])
		}
		d.request(runner.Resume, "", "resumed")
		d.release("b")
		same(t, map[string]string{"a": "Submitted 1/4", "b": "Submitted 1/1"}, d.end()) // the existing result counts
		same(t, []string{"a", "a", "b"}, told)                                          // once for each run
	})
	bubble(t, "one that waits", func(_ *testing.T, d *controlledRun) {
		d.run("a", "b", "c")
		d.request(runner.Requeue, "b", "is moved to the end of the queue")
		d.release("a", "b", "c")
		d.end()
		d.checkStarted("a c b")
	})
	bubble(t, "one that was killed", func(t *testing.T, d *controlledRun) {
		d.run("a", "b")
		d.request(runner.Kill, "b", "will not start")
		d.request(runner.Requeue, "b", "is queued again")
		d.request(runner.Kill, "a", "its attempt ends")
		d.request(runner.Requeue, "a", "is requeued")
		d.release("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
	})
	bubble(t, "one that waits for its next try", func(t *testing.T, d *controlledRun) {
		d.start = fails("a", d)
		d.run("a", "b")
		d.start = nil
		d.request(runner.Requeue, "a", "is stopped and requeued")
		d.checkStarted("a b")
		d.release("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
	})
	bubble(t, "one that is closing, and kill it after all", func(t *testing.T, d *controlledRun) {
		closing := make(chan struct{})
		d.start = func(context.Context, datasets.Instance) (env.Environment, error) {
			return &fakeSandbox{output: "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\nthe patch\n", closed: func() { <-closing }}, nil
		}
		d.run("a", "b") // a has submitted, and its sandbox is being closed
		d.request(runner.Requeue, "a", "is stopped and requeued")
		d.request(runner.Requeue, "a", "is already requeued")
		d.request(runner.Kill, "a", "is killed: its attempt ends")
		d.request(runner.Requeue, "a", "is stopped and requeued")
		close(closing)
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, d.end())
		d.checkStarted("a b a")
	})
	bubble(t, "the last one", func(t *testing.T, d *controlledRun) {
		d.run("a")
		d.request(runner.Requeue, "a", "is stopped")
		d.checkStarted("a a")
		d.release("a")
		same(t, map[string]string{"a": "Submitted 2/2"}, d.end())
	})
	bubble(t, "begins anew where others would go on inside", func(t *testing.T, d *controlledRun) {
		d.batch.ResumeAttempts = true
		d.run("a")
		d.request(runner.Requeue, "a", "is stopped")
		d.release("a")
		same(t, map[string]string{"a": "Submitted 2/2"}, d.end())
	})
}

// With many concurrent requests the run ends, each instance has its result, and no
// journal is damaged.
func TestConcurrentControl(t *testing.T) {
	bubble(t, "", func(t *testing.T, d *controlledRun) {
		ids := []string{"a", "b", "c", "d", "e", "f"}
		d.batch.Workers, d.batch.Repetitions = 3, 2
		d.start = func(_ context.Context, in datasets.Instance) (env.Environment, error) {
			time.Sleep(7 * time.Millisecond) // so that requests arrive at any time of an attempt
			d.mu.Lock()
			defer d.mu.Unlock()
			return &gatedSandbox{gate: d.gates[in.ID]}, nil
		}
		d.release(ids...)
		d.request(runner.Pause, "", "error: the run has ended or has not started")
		go func() {
			defer close(d.done)
			d.sum, d.err = d.batch.Run(t.Context(), rows(ids...))
		}()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 30 {
					order := runner.ControlRequest{Action: []runner.Action{runner.Pause, runner.Kill, runner.Resume, runner.Requeue}[(n+i)%4], TaskID: ids[(n*i)%len(ids)]}
					_, _ = d.control.Do(order)
					d.control.QueueStatus()
					time.Sleep(time.Duration(i) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		_, _ = d.control.Do(runner.ControlRequest{Action: runner.Resume})
		_, _ = d.control.Do(runner.ControlRequest{Action: runner.Requeue, TaskID: "a"})
		synctest.Wait()
		got := d.end()
		if len(got) == 0 || len(d.requestEvents()) < 20 || d.sum.ExpectedResults() != 12 {
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
