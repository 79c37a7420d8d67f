package evaluate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

// TestSubmitDuringRun submits patches as a batch does: some are evaluated while the
// agent still makes others.
func TestSubmitDuringRun(t *testing.T) {
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
		var received []string
		e, err := evaluate.Start(t.Context(), evaluate.Config{
			Folder: folder, Sandboxes: sandboxes, RunID: "r1", Workers: 2,
			Log: runner.NewLog(folder, func(e runner.Event) {
				if e.Type == runner.Verdict {
					received = append(received, e.Instance+" "+e.Verdict)
				}
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for i, in := range rows(t) {
			if err := e.Submit(evaluate.NewTask(in, "m", []byte(fix))); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				time.Sleep(testDuration + time.Second)
				synctest.Wait()
				if len(received) != 1 {
					t.Errorf("verdicts before the second patch: %v", received)
				}
			}
		}
		s, err := e.Wait()
		if err != nil || s.Count(verdicts.Resolved) != 5 || len(received) != 5 {
			t.Errorf("%v, %v, %v", s.ByClass, received, err)
		}
		// The first patch is evaluated alone, the other four by two workers.
		if took := time.Since(start); took != 3*testDuration+time.Second || maxRunning != 2 {
			t.Errorf("it took %s, with %d at once", took, maxRunning)
		}
		if err := e.Submit(evaluate.GoldTask(row(t))); !errors.Is(err, evaluate.ErrClosed) {
			t.Errorf("submit after the end: %v", err)
		}
	})
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
