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

// TestSubmitWhileItRuns is how a batch uses it: patches come as they are made,
// and get their verdicts while others are still being made.
func TestSubmitWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 10 * time.Minute
		busy, most := 0, 0
		boxes := &fakeBoxes{image: "sha256:aa"}
		boxes.play = func(_ context.Context, b *fakeBox, _ int, c env.Command) (env.Result, bool, error) {
			if !is(c, "/bin/bash /eval.sh") {
				return env.Result{}, false, nil
			}
			boxes.mu.Lock()
			busy++
			most = max(most, busy)
			boxes.mu.Unlock()
			time.Sleep(takes)
			boxes.mu.Lock()
			busy--
			boxes.mu.Unlock()
			res, err := say(c, logOf(b.in, "PASSED", 0), env.Result{})
			return res, true, err
		}
		folder, err := runner.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		var told []string
		e, err := evaluate.Start(t.Context(), evaluate.Config{
			Folder: folder, Sandboxes: boxes, RunID: "r1", Workers: 2,
			Log: runner.NewLog(folder, func(e runner.Event) {
				if e.Type == runner.Verdict {
					told = append(told, e.Instance+" "+e.Verdict)
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
				time.Sleep(takes + time.Second)
				synctest.Wait()
				if len(told) != 1 {
					t.Errorf("verdicts before the second patch: %v", told)
				}
			}
		}
		s, err := e.Wait()
		if err != nil || s.Count(verdicts.Resolved) != 5 || len(told) != 5 {
			t.Errorf("%v, %v, %v", s.ByClass, told, err)
		}
		// One alone, and four by two.
		if took := time.Since(start); took != 3*takes+time.Second || most != 2 {
			t.Errorf("it took %s, with %d at once", took, most)
		}
		if err := e.Submit(evaluate.GoldTask(row(t))); !errors.Is(err, evaluate.ErrClosed) {
			t.Errorf("submit after the end: %v", err)
		}
	})
}

// TestEvents are what those who watch are told.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boxes := &fakeBoxes{image: "sha256:aa", start: func(_ context.Context, n int) error {
			if n == 1 {
				return failing(env.PullFailed)
			}
			return nil
		}}
		b := newBench(t, identified{boxes})
		b.config.Selected = []string{"minidemo__ledger-17", "other"}
		b.run(t.Context(), predict(t, fix))
		type told struct {
			Type    runner.EventType
			Attempt int
			Verdict string
			Again   bool
			Total   int
		}
		var got []told
		for _, e := range b.events {
			got = append(got, told{e.Type, e.Attempt, e.Verdict, e.WillRetry, e.Total})
		}
		want := []told{
			{Type: runner.EvaluationStarted, Total: 2},
			{Type: runner.EvaluationAttempt, Attempt: 1},
			{Type: runner.Verdict, Attempt: 1, Verdict: "infrastructure", Again: true},
			{Type: runner.EvaluationAttempt, Attempt: 2},
			{Type: runner.Verdict, Verdict: "resolved"},
			{Type: runner.EvaluationFinished, Total: 1},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
