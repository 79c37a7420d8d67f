package runner_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// evaluationLog records what fake evaluations do.
type evaluationLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *evaluationLog) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *evaluationLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, ", ")
}

// fakeEvaluation is an evaluation whose tries end as plan says, one letter each: F fails and
// may be retried, D is disrupted, P fails for good, S succeeds. Further parts of the work are
// separated by spaces. A try waits for gate, if that is set.
type fakeEvaluation struct {
	name, key, plan string
	gate            chan struct{}
	log             *evaluationLog
	err             error
	stopped         bool
}

func (e *fakeEvaluation) Key() string { return e.key }

func (e *fakeEvaluation) Try(ctx context.Context, _ bool) (runner.End, error) {
	e.log.add("%s starts", e.name)
	if e.gate != nil {
		select {
		case <-e.gate:
		case <-ctx.Done():
			e.log.add("%s is stopped: %v", e.name, context.Cause(ctx))
			e.stopped = true
			return runner.End{}, nil
		}
	}
	how := e.plan[0]
	e.plan = e.plan[1:]
	return runner.End{Temporary: how == 'F' || how == 'D', Disrupted: how == 'D', Report: func(retry bool) {
		if retry {
			e.log.add("%s again", e.name)
		}
	}}, e.err
}

func (e *fakeEvaluation) Finish(wait time.Duration) (more bool, err error) {
	if wait > 0 || e.stopped {
		return false, nil
	}
	if rest, ok := strings.CutPrefix(e.plan, " "); ok {
		e.plan = rest
		return true, nil
	}
	e.log.add("%s ends", e.name)
	return false, nil
}

// evaluated makes a run evaluate the submissions, one at a time.
func (run *controlledRun) evaluated(gate chan struct{}) *evaluationLog {
	log := &evaluationLog{}
	run.batch.EvaluationWorkers = 1
	run.batch.Evaluate = func(in datasets.Instance, _ int, _ trajectories.Prediction) runner.Work {
		return &fakeEvaluation{name: in.ID, key: in.ID, plan: "S", gate: gate, log: log}
	}
	return log
}

func TestEvaluationRetries(t *testing.T) {
	for plan, want := range map[string]string{
		"S":         "e starts, e ends",
		"FS":        "e starts, e again, e starts, e ends",
		"FFF":       "e starts, e again, e starts, e again, e starts, e ends",
		"P":         "e starts, e ends",
		"DDFS":      "e starts, e again, e starts, e again, e starts, e again, e starts, e ends",
		"DDDS":      "e starts, e again, e starts, e again, e starts, e again, e starts, e ends",
		"S FS":      "e starts, e starts, e again, e starts, e ends",
		"FFF FFF":   "e starts, e again, e starts, e again, e starts, e starts, e again, e starts, e again, e starts, e ends",
		"DDFFF FFF": "e starts, e again, e starts, e again, e starts, e again, e starts, e again, e starts, e starts, e again, e starts, e again, e starts, e ends",
	} {
		synctest.Test(t, func(t *testing.T) {
			log, start := &evaluationLog{}, time.Now()
			err := runner.RunEvaluations(t.Context(), 1, runner.Retries{MaxTries: 3, MaxDisruptions: 2}, nil, []runner.Work{
				&fakeEvaluation{name: "e", plan: plan, log: log},
			})
			if err != nil || log.String() != want {
				t.Errorf("%s: %s, %v\nwant %s", plan, log, err, want)
			}
			if plan == "FFF" && time.Since(start) != 3*time.Second {
				t.Errorf("it waited %s", time.Since(start))
			}
		})
	}
}

// TestEvaluationsOfOneKey checks that one of several evaluations with the same key runs at a
// time, while others go on.
func TestEvaluationsOfOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, gate := &evaluationLog{}, make(chan struct{})
		done := make(chan error)
		go func() {
			done <- runner.RunEvaluations(t.Context(), 2, runner.Retries{MaxTries: 1}, nil, []runner.Work{
				&fakeEvaluation{name: "a", key: "1", plan: "S", gate: gate, log: log},
				&fakeEvaluation{name: "b", key: "1", plan: "S", log: log},
				&fakeEvaluation{name: "c", key: "2", plan: "S", log: log},
			})
		}()
		synctest.Wait()
		if got := log.String(); !strings.Contains(got, "c ends") || strings.Contains(got, "b starts") {
			t.Errorf("while a runs: %s", got)
		}
		close(gate)
		if err := <-done; err != nil || !strings.HasSuffix(log.String(), "a ends, b starts, b ends") {
			t.Errorf("%s, %v", log, err)
		}
	})
}

// TestEvaluationError checks that an error of one evaluation stops the attempts.
func TestEvaluationError(t *testing.T) {
	bubble(t, "", func(t *testing.T, run *controlledRun) {
		broken := errors.New("disk full")
		run.batch.EvaluationWorkers = 1
		run.batch.Evaluate = func(in datasets.Instance, _ int, _ trajectories.Prediction) runner.Work {
			return &fakeEvaluation{name: in.ID, plan: "S", log: &evaluationLog{}, err: broken}
		}
		run.run("a", "b", "c")
		run.release("a")
		<-run.done
		if !errors.Is(run.err, broken) || run.sum.Complete() {
			t.Errorf("%v, %+v", run.err, run.sum)
		}
		run.err = nil
		run.end()
	})
}

func TestEvaluationLane(t *testing.T) {
	bubble(t, "does not hold up attempts, and ends after them", func(t *testing.T, run *controlledRun) {
		gate := make(chan struct{})
		log := run.evaluated(gate)
		var pending atomic.Int32
		run.batch.OnAttemptsEnd = func(n int) { pending.Store(int32(n)) }
		run.release("a", "b")
		run.run("a", "b")
		if run.checkStarted("a b"); log.String() != "a starts" || pending.Load() != 2 || run.ended() {
			t.Errorf("%s; %d pending, ended %v", log, pending.Load(), run.ended())
		}
		close(gate)
		run.end()
		if log.String() != "a starts, a ends, b starts, b ends" {
			t.Error(log)
		}
	})
	bubble(t, "pause and resume, also after the attempts", func(t *testing.T, run *controlledRun) {
		gate := make(chan struct{})
		log := run.evaluated(gate)
		run.release("a", "b")
		run.run("a", "b")
		run.request(runner.Pause, "", "paused: running attempts and evaluations continue")
		if _, ok := run.control.QueueStatus(); ok {
			t.Error("there is a status of attempts after their end")
		}
		run.request(runner.Requeue, "a", "error: the run has ended")
		run.request(runner.Drain, "", "error: the run has ended")
		gate <- struct{}{}
		synctest.Wait()
		if log.String() != "a starts, a ends" || run.ended() {
			t.Errorf("paused: %s", log)
		}
		run.request(runner.Resume, "", "resumed")
		close(gate)
		run.end()
		if log.String() != "a starts, a ends, b starts, b ends" {
			t.Error(log)
		}
	})
	bubble(t, "pause holds back a retry", func(t *testing.T, run *controlledRun) {
		log := run.evaluated(nil)
		run.batch.Evaluate = func(in datasets.Instance, _ int, _ trajectories.Prediction) runner.Work {
			return &fakeEvaluation{name: in.ID, plan: "FS", log: log}
		}
		run.release("a")
		run.run("a", "b")
		run.request(runner.Pause, "", "paused")
		time.Sleep(time.Minute)
		if log.String() != "a starts, a again" {
			t.Errorf("paused: %s", log)
		}
		run.request(runner.Resume, "", "resumed")
		if log.String() != "a starts, a again, a starts, a ends" {
			t.Error(log)
		}
		run.release("b")
		run.end()
	})
	bubble(t, "drain evaluates what was submitted", func(t *testing.T, run *controlledRun) {
		gate := make(chan struct{})
		log := run.evaluated(gate)
		run.run("a", "b", "c")
		run.release("a")
		run.request(runner.Drain, "", "draining")
		run.release("b")
		if run.ended() {
			t.Error("it ended before the evaluations")
		}
		close(gate)
		same(t, map[string]string{"a": "Submitted 1/1", "b": "Submitted 1/1"}, run.end())
		if log.String() != "a starts, a ends, b starts, b ends" || !run.sum.Drained {
			t.Errorf("%s, %+v", log, run.sum)
		}
	})
	bubble(t, "kill ends what runs and drops what waits", func(t *testing.T, run *controlledRun) {
		gate := make(chan struct{})
		log := run.evaluated(gate)
		run.release("a", "b", "c")
		run.run("a", "b", "c", "d")
		run.request(runner.Kill, "b", "b is killed: its evaluation ends without a verdict")
		run.request(runner.Kill, "b", "error: b has ended")
		run.request(runner.Kill, "a", "a is killed: its evaluation ends without a verdict")
		close(gate)
		run.request(runner.Kill, "d", "its attempt ends")
		run.end()
		if want := "a starts, a is stopped: killed (test), c starts, c ends"; log.String() != want {
			t.Errorf("%s, want %s", log, want)
		}
	})
	bubble(t, "kill in the wait before a retry", func(t *testing.T, run *controlledRun) {
		log := run.evaluated(nil)
		run.batch.Evaluate = func(in datasets.Instance, _ int, _ trajectories.Prediction) runner.Work {
			return &fakeEvaluation{name: in.ID, plan: "FS", log: log}
		}
		run.release("a")
		run.run("a")
		run.request(runner.Kill, "a", "its evaluation ends without a verdict")
		run.end()
		if log.String() != "a starts, a again" {
			t.Error(log)
		}
	})
	bubble(t, "a later submission takes the place of one that waits, and waits for one that runs", func(t *testing.T, run *controlledRun) {
		gate := make(chan struct{})
		log, n := run.evaluated(gate), 0
		run.batch.Evaluate = func(in datasets.Instance, _ int, _ trajectories.Prediction) runner.Work {
			n++
			return &fakeEvaluation{name: fmt.Sprintf("%s%d", in.ID, n), plan: "S", gate: gate, log: log}
		}
		run.release("a", "b")
		run.run("a", "b", "c")
		run.request(runner.Requeue, "a", "is requeued")
		run.request(runner.Requeue, "b", "is requeued")
		run.release("c")
		close(gate)
		run.end()
		// The requeued attempts are submissions 4 and 5.
		if want := "a1 starts, a1 ends, b5 starts, b5 ends, c3 starts, c3 ends, a4 starts, a4 ends"; log.String() != want {
			t.Errorf("%s\nwant %s", log, want)
		}
	})
	bubble(t, "the budget ends attempts only", func(t *testing.T, run *controlledRun) {
		gate := make(chan struct{})
		log := run.evaluated(gate)
		run.batch.Budget.Calls = 2
		run.release("a", "b")
		run.run("a", "b", "c")
		close(gate)
		if run.end(); log.String() != "a starts, a ends, b starts, b ends" || !run.sum.BudgetExhausted || run.sum.Unstarted != 1 {
			t.Errorf("%s, %+v", log, run.sum)
		}
	})
	bubble(t, "the circuit breaker ends attempts only", func(t *testing.T, run *controlledRun) {
		gate := make(chan struct{})
		log := run.evaluated(gate)
		run.batch.MaxProviderFailures = 1
		run.start = submits
		run.batch.Models = &failsAt{id: "b"}
		run.run("a", "b", "c")
		close(gate)
		if run.end(); log.String() != "a starts, a ends" || run.sum.Halt == nil || run.sum.Unstarted != 1 {
			t.Errorf("%s, %+v", log, run.sum)
		}
	})
	bubble(t, "Ctrl-C ends both", func(t *testing.T, run *controlledRun) {
		log := run.evaluated(make(chan struct{}))
		ctx, stop := context.WithCancelCause(t.Context())
		run.release("a", "b")
		go func() {
			defer close(run.done)
			run.sum, run.err = run.batch.Run(ctx, rows("a", "b", "c"))
		}()
		synctest.Wait()
		stop(agent.ErrInterrupted)
		if run.end(); log.String() != "a starts, a is stopped: Interrupted" {
			t.Error(log)
		}
	})
	bubble(t, "earlier submissions are evaluated at the start", func(t *testing.T, run *controlledRun) {
		run.release("a", "b")
		run.run("a")
		run.end()
		log := run.evaluated(nil)
		run.done = make(chan struct{})
		run.run("a", "b")
		run.end()
		if log.String() != "a starts, a ends, b starts, b ends" {
			t.Error(log)
		}
	})
}

// failsAt are models that work for all instances but one.
type failsAt struct{ id string }

func (f *failsAt) For(in datasets.Instance) (model.Model, error) {
	if in.ID == f.id {
		return constantModel{&model.Error{Status: model.AuthenticationError, HTTPStatus: 401, Err: errors.New("no such key")}}, nil
	}
	return constantModel{}, nil
}

// TestSweepSharesEvaluationWorkers checks that the number of workers holds for all runs
// together, and that kills reach the evaluations of their own run only.
func TestSweepSharesEvaluationWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, gate := &evaluationLog{}, make(chan struct{})
		controls := map[string]*runner.Control{"x": {}, "y": {}}
		var batches []*runner.Batch
		for _, name := range []string{"x", "y"} {
			b := batch(t, filepath.Join(t.TempDir(), name), submits)
			b.Workers, b.EvaluationWorkers, b.Control = 1, 1, controls[name]
			b.Evaluate = func(in datasets.Instance, _ int, _ trajectories.Prediction) runner.Work {
				return &fakeEvaluation{name: name + in.ID, key: "k", plan: "S", gate: gate, log: log}
			}
			batches = append(batches, b)
		}
		done := make(chan error)
		go func() {
			_, err := runner.RunAll(t.Context(), batches, rows("1", "2"))
			done <- err
		}()
		synctest.Wait()
		if text, err := controls["y"].Do(runner.ControlRequest{Action: runner.Kill, TaskID: "1"}); err != nil || !strings.Contains(text, "its evaluation ends") {
			t.Errorf("%s, %v", text, err)
		}
		close(gate)
		if err := <-done; err != nil || log.String() != "x1 starts, x1 ends, x2 starts, x2 ends, y2 starts, y2 ends" {
			t.Errorf("%s, %v", log, err)
		}
	})
}

// TestKilledEvaluationInEvents checks that the event of a killed evaluation does not count as
// one of a requeued task.
func TestKilledEvaluationInEvents(t *testing.T) {
	bubble(t, "", func(t *testing.T, run *controlledRun) {
		run.evaluated(make(chan struct{}))
		run.release("a")
		run.run("a")
		run.request(runner.Kill, "a", "its evaluation ends")
		run.end()
		if e := run.requestEvents(); len(e) != 1 || e[0].Class != "" || e[0].Total != 1 {
			t.Errorf("%+v", e)
		}
	})
}
