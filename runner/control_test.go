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
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// controlledRun is a run in a synctest bubble that receives requests. Its commands run
// until release is called.
type controlledRun struct {
	t       *testing.T
	dir     string
	batch   *runner.Batch
	control runner.Control

	mu     sync.Mutex
	gates  map[string]chan struct{}
	starts []string
	events []runner.Event
	start  starter // nil: a gatedSandbox

	sum  runs.Summary
	err  error
	done chan struct{}
}

func newControlledRun(t *testing.T) *controlledRun {
	run := &controlledRun{t: t, dir: filepath.Join(t.TempDir(), "run"), gates: map[string]chan struct{}{}, done: make(chan struct{})}
	run.batch = batch(t, run.dir, func(ctx context.Context, in datasets.Instance) (env.Environment, error) {
		run.mu.Lock()
		run.starts = append(run.starts, in.ID)
		gate := run.gates[in.ID]
		if gate == nil {
			gate = make(chan struct{})
			run.gates[in.ID] = gate
		}
		special := run.start
		run.mu.Unlock()
		if special != nil {
			return special(ctx, in)
		}
		return &gatedSandbox{gate: gate}, nil
	})
	run.batch.Workers = 1
	run.batch.Control = &run.control
	run.batch.Log = runner.NewLog(run.batch.Folder, func(e runner.Event) {
		run.mu.Lock()
		defer run.mu.Unlock()
		if !e.IsTransient() {
			run.events = append(run.events, e)
		}
	})
	return run
}

// gatedSandbox is a sandbox whose command waits for its gate and then submits.
type gatedSandbox struct {
	fakeSandbox
	gate chan struct{}
}

func (g *gatedSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if slices.Equal(c.Interpreter, []string{env.RepositoryProgram}) {
		return env.Result{ExitCode: 127}, nil
	}
	select {
	case <-g.gate:
		return env.Result{Output: []byte("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\nthe patch\n")}, nil
	case <-ctx.Done():
		return env.Result{ExitCode: -1}, context.Cause(ctx)
	}
}

// run starts the batch and waits until it blocks.
func (run *controlledRun) run(ids ...string) {
	run.t.Helper()
	ctx := run.t.Context()
	go func() {
		defer close(run.done)
		run.sum, run.err = run.batch.Run(ctx, rows(ids...))
	}()
	synctest.Wait()
}

// request sends a request and waits until the run blocks.
func (run *controlledRun) request(a runner.Action, taskID, want string) {
	run.t.Helper()
	effect, err := run.control.Do(runner.ControlRequest{Action: a, TaskID: taskID, Source: "test"})
	if err != nil {
		effect = "error: " + err.Error()
	}
	if !strings.Contains(effect, want) {
		run.t.Errorf("%s %s: %q, want %q", a, taskID, effect, want)
	}
	synctest.Wait()
}

// release releases the commands of an instance, now and later.
func (run *controlledRun) release(ids ...string) {
	run.mu.Lock()
	for _, id := range ids {
		if run.gates[id] == nil {
			run.gates[id] = make(chan struct{})
		}
		close(run.gates[id])
	}
	run.mu.Unlock()
	synctest.Wait()
}

// checkStarted checks which sandboxes were started so far.
func (run *controlledRun) checkStarted(want string) {
	run.t.Helper()
	run.mu.Lock()
	defer run.mu.Unlock()
	starts := slices.Clone(run.starts)
	if run.batch.Workers > 1 { // several workers start in any order
		slices.Sort(starts)
	}
	if got := strings.Join(starts, " "); got != want {
		run.t.Errorf("started %s; want %s", got, want)
	}
}

// ended reports whether the run has ended.
func (run *controlledRun) ended() bool {
	select {
	case <-run.done:
		return true
	default:
		return false
	}
}

// end waits for the run and returns the outcomes of the instances.
func (run *controlledRun) end() map[string]string {
	run.t.Helper()
	synctest.Wait()
	select {
	case <-run.done:
	case <-time.After(time.Hour):
		run.t.Fatal("the run does not end")
	}
	if run.err != nil {
		run.t.Fatal(run.err)
	}
	got := map[string]string{}
	for id, r := range results(run.t, run.dir) {
		got[id] = fmt.Sprintf("%s %d/%d", r.ExitStatus, r.Attempt, r.Attempts)
	}
	if _, err := run.control.Do(runner.ControlRequest{Action: runner.Pause}); !errors.Is(err, runner.ErrNotRunning) {
		run.t.Errorf("after the end: %v", err)
	}
	if _, ok := run.control.QueueStatus(); ok {
		run.t.Error("after the end there is a status")
	}
	checkJournals(run.t, run.dir)
	return got
}

// requestEvents returns the events of requests.
func (run *controlledRun) requestEvents() (all []runner.Event) {
	run.mu.Lock()
	defer run.mu.Unlock()
	for _, e := range run.events {
		if e.Type == runner.ControlApplied {
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

// bubble runs a test in a synctest bubble, with a fake clock.
func bubble(t *testing.T, name string, f func(t *testing.T, run *controlledRun)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, newControlledRun(t)) })
	})
}

func TestPause(t *testing.T) {
	bubble(t, "and resume", func(t *testing.T, run *controlledRun) {
		run.run("a", "b", "c")
		run.request(runner.Pause, "", "paused: running attempts continue")
		run.request(runner.Pause, "", "already paused")
		run.release("a")
		run.checkStarted("a")
		s, _ := run.control.QueueStatus()
		same(t, runner.QueueStatus{
			Paused: true, Total: 3, Done: 1, Working: []string{}, Waiting: []string{"b", "c"}, Ended: []string{"a"},
			Classes: map[trajectories.Class]int{trajectories.Submitted: 1},
		}, s)
		run.request(runner.Resume, "", "resumed")
		run.request(runner.Resume, "", "not paused")
		run.checkStarted("a b")
		run.release("b", "c")
		same(t, map[string]string{"a": "Submitted 1/1", "b": "Submitted 1/1", "c": "Submitted 1/1"}, run.end())
		var received []string
		for _, e := range run.requestEvents() {
			received = append(received, string(e.Action)+" by "+e.Source)
		}
		same(t, []string{"pause by test", "resume by test"}, received)
	})
	bubble(t, "with nothing left", func(t *testing.T, run *controlledRun) {
		run.run("a")
		run.request(runner.Pause, "", "paused")
		run.release("a")
		same(t, map[string]string{"a": "Submitted 1/1"}, run.end())
	})
	bubble(t, "then Ctrl-C", func(t *testing.T, run *controlledRun) {
		ctx, stop := context.WithCancelCause(t.Context())
		go func() {
			defer close(run.done)
			run.sum, run.err = run.batch.Run(ctx, rows("a", "b"))
		}()
		synctest.Wait()
		run.request(runner.Pause, "", "paused")
		run.release("a")
		stop(agent.ErrInterrupted)
		same(t, map[string]string{"a": "Submitted 1/1"}, run.end())
	})
	bubble(t, "then the money is spent", func(t *testing.T, run *controlledRun) {
		run.batch.Budget.Calls = 1
		run.run("a", "b")
		run.request(runner.Pause, "", "paused")
		run.release("a")
		if run.end(); !run.sum.BudgetExhausted || run.sum.Drained {
			t.Errorf("%+v", run.sum)
		}
	})
	bubble(t, "holds back a further try, which is the first then", func(t *testing.T, run *controlledRun) {
		run.start = fails("a", run)
		run.run("a", "b")
		run.request(runner.Pause, "", "paused") // while a waits for its second try
		time.Sleep(time.Minute)
		run.checkStarted("a")
		run.start = nil
		run.request(runner.Resume, "", "resumed")
		run.checkStarted("a a")
		run.release("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, run.end())
	})
}

// fails makes sandboxes of an instance fail to start.
func fails(id string, run *controlledRun) starter {
	return func(_ context.Context, in datasets.Instance) (env.Environment, error) {
		if in.ID == id {
			return nil, &env.Error{Status: env.StartFailed, Op: "start"}
		}
		run.mu.Lock()
		defer run.mu.Unlock()
		return &gatedSandbox{gate: run.gates[in.ID]}, nil
	}
}

func TestDrain(t *testing.T) {
	bubble(t, "ends with what runs", func(t *testing.T, run *controlledRun) {
		run.run("a", "b")
		run.request(runner.Drain, "", "draining")
		run.request(runner.Drain, "", "already draining")
		run.request(runner.Requeue, "b", "is moved to the end of the queue; the run is draining and starts it only after a resume")
		run.release("a")
		same(t, map[string]string{"a": "Submitted 1/1"}, run.end())
		if !run.sum.Drained || run.sum.Unstarted != 1 || run.sum.Complete() {
			t.Errorf("%+v", run.sum)
		}
	})
	bubble(t, "with all begun is no drain", func(t *testing.T, run *controlledRun) {
		run.run("a")
		run.request(runner.Drain, "", "draining")
		run.release("a")
		if run.end(); run.sum.Drained || !run.sum.Complete() {
			t.Errorf("%+v", run.sum)
		}
	})
	bubble(t, "then resume", func(t *testing.T, run *controlledRun) {
		run.batch.Workers = 2
		run.run("a", "b", "c", "d")
		run.request(runner.Drain, "", "draining")
		run.release("a") // its worker waits for another task
		run.checkStarted("a b")
		run.request(runner.Resume, "", "resumed")
		run.checkStarted("a b c")
		run.release("b", "c", "d")
		if run.end(); !run.sum.Complete() || run.sum.Drained {
			t.Errorf("%+v", run.sum)
		}
	})
	bubble(t, "of a paused run ends it at once", func(t *testing.T, run *controlledRun) {
		run.run("a", "b")
		run.request(runner.Pause, "", "paused")
		run.release("a")
		run.request(runner.Drain, "", "draining")
		if !run.ended() {
			t.Error("it goes on")
		}
		run.end()
	})
	bubble(t, "tries nothing again", func(t *testing.T, run *controlledRun) {
		run.start = fails("a", run)
		run.run("a", "b")
		run.request(runner.Drain, "", "draining") // while a waits for its second try
		same(t, map[string]string{"a": "StartFailed 1/1"}, run.end())
	})
}

func TestKill(t *testing.T) {
	bubble(t, "one that runs", func(t *testing.T, run *controlledRun) {
		run.run("a", "b")
		run.request(runner.Kill, "a", "a is killed: its attempt ends")
		run.request(runner.Kill, "a", "error: a has ended")
		run.checkStarted("a b")
		run.release("b")
		same(t, map[string]string{"a": "Interrupted 1/1", "b": "Submitted 1/1"}, run.end())
		if r := results(t, run.dir)["a"]; r.Error != "killed (test)" {
			t.Errorf("it says %q", r.Error)
		}
	})
	bubble(t, "twice, while it ends", func(t *testing.T, run *controlledRun) {
		gate := make(chan struct{})
		run.start = func(context.Context, datasets.Instance) (env.Environment, error) {
			return &fakeSandbox{block: true, closed: func() { <-gate }}, nil
		}
		run.run("a")
		run.request(runner.Kill, "a", "its attempt ends")
		run.request(runner.Kill, "a", "is already ending")
		close(gate)
		same(t, map[string]string{"a": "Interrupted 1/1"}, run.end())
		if n := len(run.requestEvents()); n != 1 {
			t.Errorf("%d events", n)
		}
	})
	bubble(t, "one that waits", func(t *testing.T, run *controlledRun) {
		run.run("a", "b", "c")
		run.request(runner.Kill, "b", "it will not start in this run")
		run.request(runner.Kill, "b", "was already killed")
		run.release("a", "c")
		same(t, map[string]string{"a": "Submitted 1/1", "c": "Submitted 1/1"}, run.end())
		run.checkStarted("a c")
		if e := run.requestEvents()[0]; e.Total != 2 || e.Instance != "b" {
			t.Errorf("%+v", e)
		}
	})
	bubble(t, "one whose sandbox is being started", func(t *testing.T, run *controlledRun) {
		run.start = func(ctx context.Context, _ datasets.Instance) (env.Environment, error) {
			<-ctx.Done()
			return nil, &env.Error{Status: env.StartFailed, Op: "start", Err: ctx.Err()}
		}
		run.run("a")
		run.request(runner.Kill, "a", "its attempt ends")
		same(t, map[string]string{"a": "Interrupted 1/1"}, run.end())
	})
	bubble(t, "one that waits for its next try", func(t *testing.T, run *controlledRun) {
		run.start = fails("a", run)
		run.run("a")
		run.request(runner.Kill, "a", "it will not be retried in this run")
		same(t, map[string]string{"a": "StartFailed 1/1"}, run.end())
	})
	bubble(t, "one that nobody knows", func(t *testing.T, run *controlledRun) {
		run.run("a")
		_, err := run.control.Do(runner.ControlRequest{Action: runner.Kill, TaskID: "z"})
		unknown, ok := errors.AsType[*runner.UnknownTaskError](err)
		if !ok || !slices.Equal(unknown.Known, []string{"a"}) {
			t.Errorf("%v", err)
		}
		run.request("dance", "", `error: unknown action "dance"`)
		run.release("a")
		run.end()
	})
}

func TestRequeue(t *testing.T) {
	bubble(t, "one that runs", func(t *testing.T, run *controlledRun) {
		run.run("a", "b")
		run.request(runner.Requeue, "a", "is stopped and requeued")
		run.checkStarted("a b")
		s, _ := run.control.QueueStatus()
		same(t, []string{"a"}, s.Waiting)
		run.release("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, run.end())
		run.checkStarted("a b a")
		out, ok, err := trajectories.ReadOutcome(filepath.Join(run.dir, "a", "attempts", "1", "journal.jsonl"))
		if !ok || err != nil || out.Class != trajectories.Interrupted || out.Error != "requeued (test)" {
			t.Errorf("the first attempt: %+v, %v", out, err)
		}
	})
	bubble(t, "one that has a result of this run", func(t *testing.T, run *controlledRun) {
		var received []string
		run.batch.Evaluate = func(in datasets.Instance, _ int, p trajectories.Prediction) runner.Work {
			received = append(received, in.ID+" "+p.Patch)
			return nil
		}
		run.run("a", "b")
		run.release("a")
		run.request(runner.Requeue, "a", "is requeued; its earlier attempts are kept")
		run.request(runner.Requeue, "a", "is moved to the end of the queue")
		run.release("b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, run.end())
		run.checkStarted("a b a")
		same(t, []string{"a the patch\n", "b the patch\n", "a the patch\n"}, received)
		if e := run.requestEvents()[0]; e.Class != trajectories.Submitted || e.Total != 2 {
			t.Errorf("%+v", e)
		}
		if run.sum.Classes[trajectories.Submitted] != 2 {
			t.Errorf("%+v", run.sum)
		}
	})
	bubble(t, "one that had its result, and fails now", func(t *testing.T, run *controlledRun) {
		var received []string
		run.batch.Evaluate = func(in datasets.Instance, _ int, _ trajectories.Prediction) runner.Work {
			received = append(received, in.ID)
			return nil
		}
		run.release("a")
		run.run("a")
		run.end()
		run.start, run.done = fails("a", run), make(chan struct{})
		run.run("a", "b")
		run.request(runner.Pause, "", "paused") // keeps the run from ending
		run.request(runner.Requeue, "a", "is requeued")
		if e := run.requestEvents(); e[len(e)-1].Total != 2 || e[len(e)-1].Class != "" {
			t.Errorf("%+v", e[len(e)-1])
		}
		run.request(runner.Resume, "", "resumed")
		run.release("b")
		same(t, map[string]string{"a": "Submitted 1/4", "b": "Submitted 1/1"}, run.end()) // the existing result counts
		same(t, []string{"a", "a", "b"}, received)                                        // once for each run
	})
	bubble(t, "one that waits", func(_ *testing.T, run *controlledRun) {
		run.run("a", "b", "c")
		run.request(runner.Requeue, "b", "is moved to the end of the queue")
		run.release("a", "b", "c")
		run.end()
		run.checkStarted("a c b")
	})
	bubble(t, "one that was killed", func(t *testing.T, run *controlledRun) {
		run.run("a", "b")
		run.request(runner.Kill, "b", "will not start")
		run.request(runner.Requeue, "b", "is queued again")
		run.request(runner.Kill, "a", "its attempt ends")
		run.request(runner.Requeue, "a", "is requeued")
		run.release("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, run.end())
	})
	bubble(t, "one that waits for its next try", func(t *testing.T, run *controlledRun) {
		run.start = fails("a", run)
		run.run("a", "b")
		run.start = nil
		run.request(runner.Requeue, "a", "is stopped and requeued")
		run.checkStarted("a b")
		run.release("a", "b")
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, run.end())
	})
	bubble(t, "one that is closing, and kill it after all", func(t *testing.T, run *controlledRun) {
		closing := make(chan struct{})
		run.start = func(context.Context, datasets.Instance) (env.Environment, error) {
			return &fakeSandbox{output: "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\nthe patch\n", closed: func() { <-closing }}, nil
		}
		run.run("a", "b") // a has submitted, and its sandbox is being closed
		run.request(runner.Requeue, "a", "is stopped and requeued")
		run.request(runner.Requeue, "a", "is already requeued")
		run.request(runner.Kill, "a", "is killed: its attempt ends")
		run.request(runner.Requeue, "a", "is stopped and requeued")
		close(closing)
		same(t, map[string]string{"a": "Submitted 2/2", "b": "Submitted 1/1"}, run.end())
		run.checkStarted("a b a")
	})
	bubble(t, "the last one", func(t *testing.T, run *controlledRun) {
		run.run("a")
		run.request(runner.Requeue, "a", "is stopped")
		run.checkStarted("a a")
		run.release("a")
		same(t, map[string]string{"a": "Submitted 2/2"}, run.end())
	})
	bubble(t, "begins anew where others would go on inside", func(t *testing.T, run *controlledRun) {
		run.batch.ResumeAttempts = true
		run.run("a")
		run.request(runner.Requeue, "a", "is stopped")
		run.release("a")
		same(t, map[string]string{"a": "Submitted 2/2"}, run.end())
	})
}

// With many concurrent requests the run ends, each instance has its result, and no
// journal is damaged.
func TestConcurrentControl(t *testing.T) {
	bubble(t, "", func(t *testing.T, run *controlledRun) {
		ids := []string{"a", "b", "c", "d", "e", "f"}
		run.batch.Workers, run.batch.Repetitions = 3, 2
		run.start = func(_ context.Context, in datasets.Instance) (env.Environment, error) {
			time.Sleep(7 * time.Millisecond) // so that requests arrive at any time of an attempt
			run.mu.Lock()
			defer run.mu.Unlock()
			return &gatedSandbox{gate: run.gates[in.ID]}, nil
		}
		run.release(ids...)
		run.request(runner.Pause, "", "error: the run has ended or has not started")
		go func() {
			defer close(run.done)
			run.sum, run.err = run.batch.Run(t.Context(), rows(ids...))
		}()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 30 {
					order := runner.ControlRequest{Action: []runner.Action{runner.Pause, runner.Kill, runner.Resume, runner.Requeue}[(n+i)%4], TaskID: ids[(n*i)%len(ids)]}
					_, _ = run.control.Do(order)
					run.control.QueueStatus()
					time.Sleep(time.Duration(i) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		_, _ = run.control.Do(runner.ControlRequest{Action: runner.Resume})
		_, _ = run.control.Do(runner.ControlRequest{Action: runner.Requeue, TaskID: "a"})
		synctest.Wait()
		got := run.end()
		if len(got) == 0 || len(run.requestEvents()) < 20 || run.sum.ExpectedResults() != 12 {
			t.Errorf("%v %+v", got, run.sum)
		}
		done := 0
		for _, n := range maps.All(run.sum.Classes) {
			done += n
		}
		if done+run.sum.Unstarted != 12 {
			t.Errorf("%+v", run.sum)
		}
	})
}
