package evaluate_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// submittingAgent submits the fix, after a time for some instances.
type submittingAgent struct{ after map[string]time.Duration }

func (a submittingAgent) Run(_ context.Context, s agent.Session) trajectories.Outcome {
	id, _ := s.Task.Instance["instance_id"].(string)
	time.Sleep(a.after[id])
	out := trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: "Submitted", Submission: trajectories.Bytes(fix)}
	if _, err := s.Recorder.Append(trajectories.TypeOutcome, out); err != nil {
		panic(err)
	}
	return out
}

type noModels struct{}

func (noModels) For(datasets.Instance) (model.Model, error) { return nil, nil }

// TestEvaluationDuringRun checks that a batch evaluates submissions while the agent still
// makes others.
func TestEvaluationDuringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const testDuration = 10 * time.Minute
		running, maxRunning := 0, 0
		sandboxes := &fakeSandboxes{image: "sha256:aa"}
		sandboxes.execute = func(_ context.Context, b *fakeSandbox, _ int, c env.Command) (env.Result, bool, error) {
			if !isCommand(c, "/bin/bash /eval.sh") {
				return env.Result{}, false, nil
			}
			sandboxes.mu.Lock()
			running++
			maxRunning = max(maxRunning, running)
			sandboxes.mu.Unlock()
			time.Sleep(testDuration)
			sandboxes.mu.Lock()
			running--
			sandboxes.mu.Unlock()
			res, err := respond(c, logOf(b.in, "PASSED", 0), env.Result{})
			return res, true, err
		}
		folder, err := runner.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		var mu sync.Mutex
		var received []string
		log := runner.NewLog(folder, func(e runner.Event) {
			if e.Type == runner.Verdict {
				mu.Lock()
				defer mu.Unlock()
				received = append(received, e.Instance+" "+e.Verdict)
			}
		})
		e, err := evaluate.Open(evaluate.Config{Folder: folder, Sandboxes: sandboxes, RunID: "r1", Log: log})
		if err != nil {
			t.Fatal(err)
		}
		start, all := time.Now(), rows(t)
		b := runner.Batch{
			Folder: folder, Log: log, Sandboxes: sandboxes, Models: noModels{}, ModelName: "m", Workers: 1, MaxTries: 1, EvaluationWorkers: 2,
			Agent: submittingAgent{map[string]time.Duration{all[1].ID: testDuration + time.Second}},
			OnAttemptsEnd: func(pending int) {
				mu.Lock()
				defer mu.Unlock()
				if len(received) != 1 || pending != 4 {
					t.Errorf("at the end of the attempts: verdicts %v, %d pending", received, pending)
				}
			},
			Evaluate: func(in datasets.Instance, _ int, p trajectories.Prediction) runner.Work {
				w, err := e.Job(evaluate.NewTask(in, p.Model, []byte(p.Patch)))
				if err != nil {
					t.Error(err)
				}
				return w
			},
		}
		if sum, err := b.Run(t.Context(), all); err != nil || !sum.Complete() {
			t.Fatalf("%+v, %v", sum, err)
		}
		s, err := e.Close()
		if err != nil || s.Count(verdicts.Resolved) != 5 || len(received) != 5 {
			t.Errorf("%v, %v, %v", s.ByClass, received, err)
		}
		// The first patch is evaluated alone, the other four by two workers.
		if took := time.Since(start); took != 3*testDuration+time.Second || maxRunning != 2 {
			t.Errorf("it took %s, with %d at once", took, maxRunning)
		}
	})
}

// TestSamePatch checks that a patch that is submitted again is the same job, until that has
// a verdict, and that another patch is another job.
func TestSamePatch(t *testing.T) {
	b := newEvaluation(t, identifiedSandboxes{&fakeSandboxes{image: "sha256:aa"}})
	folder, err := runner.Open(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	b.config.Folder, b.config.Log = folder, runner.NewLog(folder, nil)
	e, err := evaluate.Open(b.config)
	if err != nil {
		t.Fatal(err)
	}
	get := func(patch string) runner.Work {
		w, err := e.Job(predict(t, patch))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	first := get(fix)
	if get(fix) != first || get(fix+"\n") == first {
		t.Error("another job for the same patch, or the same for another")
	}
	last := get(fix)
	if err := runner.RunEvaluations(t.Context(), 1, runner.Retries{MaxTries: 1}, b.config.Log, []runner.Work{last}); err != nil {
		t.Fatal(err)
	}
	if get(fix) == last {
		t.Error("a job with a verdict runs again")
	}
}

// TestEvents checks the emitted events.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sandboxes := &fakeSandboxes{image: "sha256:aa", start: func(_ context.Context, n int) error {
			if n == 1 {
				return newEnvError(env.PullFailed)
			}
			return nil
		}}
		b := newEvaluation(t, identifiedSandboxes{sandboxes})
		b.config.Selected = []string{"minidemo__ledger-17", "other"}
		b.run(t.Context(), predict(t, fix))
		type received struct {
			Type    runner.EventType
			Attempt int
			Verdict string
			Again   bool
			Total   int
		}
		var got []received
		for _, e := range b.events {
			got = append(got, received{e.Type, e.Attempt, e.Verdict, e.WillRetry, e.Total})
		}
		want := []received{
			{Type: runner.EvaluationStarted, Total: 2},
			{Type: runner.EvaluationRunStarted, Attempt: 1},
			{Type: runner.Verdict, Attempt: 1, Verdict: "infrastructure", Again: true},
			{Type: runner.EvaluationRunStarted, Attempt: 2},
			{Type: runner.Verdict, Verdict: "resolved"},
			{Type: runner.EvaluationFinished, Total: 1},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
