package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// numberedModel submits a different patch each time, and fails for some calls.
func numberedModel(fails ...int64) starter {
	var starts atomic.Int64
	return func(context.Context, datasets.Instance) (env.Environment, error) {
		n := starts.Add(1)
		for _, f := range fails {
			if n == f {
				return nil, &env.Error{Status: env.ContainerDied, Err: errors.New("gone")}
			}
		}
		return &fakeSandbox{output: fmt.Sprintf("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\npatch %d\n", n)}, nil
	}
}

// repetitionsOf returns the class and attempt of each repetition in results.json.
func repetitionsOf(t *testing.T, dir, id string) map[int]string {
	t.Helper()
	got := map[int]string{}
	for _, s := range results(t, dir)[id].Repetitions {
		got[s.Repetition] = fmt.Sprintf("%s %d", s.Class, s.Attempt)
	}
	return got
}

// A failed try is retried for the same repetition; preds.json has the first
// repetition.
func TestRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := batch(t, dir, numberedModel(2))
		b.Workers, b.Repetitions = 1, 3
		received := map[int]string{}
		b.Evaluate = func(_ datasets.Instance, sample int, p trajectories.Prediction) runner.Work {
			received[sample] = p.Patch
			return nil
		}
		sum, err := b.Run(t.Context(), rows("a"))
		if err != nil || !sum.Complete() || sum.ExpectedResults() != 3 || sum.Classes[trajectories.Submitted] != 3 {
			t.Fatalf("%+v, %v", sum, err)
		}
		want := map[int]string{1: "submitted 1", 2: "submitted 3", 3: "submitted 4"}
		if diff := cmp.Diff(want, repetitionsOf(t, dir, "a")); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[int]string{1: "patch 1\n", 2: "patch 3\n", 3: "patch 4\n"}, received); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := preds(t, dir)["a"]; got != "patch 1\n" {
			t.Errorf("preds.json has %q", got)
		}
		run, err := runs.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		var tries []int
		for _, a := range run.Instances[0].Attempts {
			tries = append(tries, a.Repetition)
		}
		if diff := cmp.Diff([]int{1, 2, 2, 3}, tries); diff != "" {
			t.Errorf("attempts are of samples (-want +got):\n%s", diff)
		}
		further, err := run.ExtraSubmissions()
		if err != nil || len(further) != 2 || further[0].Repetition != 2 || further[0].Patch != "patch 3\n" || further[0].Model != "m" {
			t.Errorf("further submissions %+v, %v", further, err)
		}
	})
}

// A missing repetition is added by the next start; the others stay.
func TestMoreRepetitionsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := batch(t, dir, numberedModel(2, 3, 4)) // fails in all tries of the second repetition
		first.Workers, first.Repetitions = 1, 3
		sum, err := first.Run(t.Context(), rows("a"))
		if err != nil || sum.Complete() || sum.Classes[trajectories.Environment] != 1 {
			t.Fatalf("%+v, %v", sum, err)
		}
		if err := first.Folder.Close(); err != nil {
			t.Fatal(err)
		}
		second := batch(t, dir, submits)
		second.Repetitions = 3
		sum, err = second.Run(t.Context(), rows("a"))
		if err != nil || !sum.Complete() || sum.Skipped != 2 {
			t.Errorf("%+v, %v", sum, err)
		}
		want := map[int]string{1: "submitted 1", 2: "submitted 6", 3: "submitted 5"}
		if diff := cmp.Diff(want, repetitionsOf(t, dir, "a")); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
	})
}

// A huge repetition number in an untrusted journal allocates no memory.
func TestUntrustedRepetition(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, submits)
	if _, err := b.Run(t.Context(), rows("a")); err != nil {
		t.Fatal(err)
	}
	where := filepath.Join(dir, "a", "attempts", "2")
	if err := os.MkdirAll(where, 0o755); err != nil {
		t.Fatal(err)
	}
	j, err := trajectories.Create(filepath.Join(where, "journal.jsonl"), trajectories.Header{InstanceID: "a", Attempt: 2, Repetition: 1 << 40})
	if err == nil {
		_, err = j.Append(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Submitted})
	}
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	run, err := runs.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := run.Instances[0].Attempts[1].Repetition; got != runs.MaxRepetitions {
		t.Errorf("sample %d", got)
	}
}

// Invalid repetitions in an untrusted results.json are ignored.
func TestUntrustedRepetitionsInResults(t *testing.T) {
	dir := t.TempDir()
	text := `{"format":"mini-1","instances":{"a":{"class":"submitted","samples":[{"sample":1,"class":"submitted"},{"sample":2,"class":"limit"},{"sample":1099511627776,"class":"submitted"},{"sample":-1,"class":"submitted"}]},"b":{"class":"submitted"}}}`
	if err := os.WriteFile(filepath.Join(dir, "results.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := runs.Read(dir)
	if err != nil || len(run.Instances) != 2 {
		t.Fatalf("%+v, %v", run, err)
	}
	var got []int
	for _, in := range run.Instances {
		for _, s := range in.Repetitions {
			got = append(got, s.Repetition)
		}
	}
	if diff := cmp.Diff([]int{1, 2, 1}, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

// If a run was killed during the first repetition, the second one is not lost, and
// does not count as the first.
func TestOnlyLaterRepetitionHasResult(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, numberedModel())
	b.Workers, b.Repetitions = 1, 2
	if _, err := b.Run(t.Context(), rows("a")); err != nil {
		t.Fatal(err)
	}
	if err := b.Folder.Close(); err != nil {
		t.Fatal(err)
	}
	cutOutcome(t, filepath.Join(dir, "a", "attempts", "1", "journal.jsonl"))
	if err := os.Remove(filepath.Join(dir, "a", "a.traj.json")); err != nil {
		t.Fatal(err)
	}
	again := batch(t, dir, func(context.Context, datasets.Instance) (env.Environment, error) {
		return nil, &env.Error{Status: env.ImageNotFound, Err: errors.New("gone")}
	})
	writeVerdict(t, dir, "eval", "m", "a", "resolved", "patch 2\n", 0)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(agent.ErrInterrupted) // before the start
	again.Repetitions = 2
	if sum, err := again.Run(ctx, rows("a")); err != nil || sum.Unstarted != 1 || sum.Classes[trajectories.Submitted] != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	check := func(when string) {
		t.Helper()
		res, ok := results(t, dir)["a"]
		if !ok || res.Class != "" || res.Attempts != 2 || len(res.Repetitions) != 1 || res.Repetitions[0].Repetition != 2 ||
			res.Repetitions[0].Verdict == nil || *res.Repetitions[0].Verdict != "resolved" {
			t.Errorf("%s: results.json has %+v", when, res)
		}
		if got := preds(t, dir); len(got) > 0 {
			t.Errorf("%s: preds.json has %v", when, got)
		}
		run, err := runs.Read(dir)
		if err != nil || len(run.Instances) != 1 {
			t.Fatal(run, err)
		}
		in := run.Instances[0]
		if in.Result != nil || in.MissingResults(2) != 1 || len(in.Repetitions) != 1 || in.Repetitions[0].Verdict == nil {
			t.Errorf("%s: %+v", when, in)
		}
		further, err := run.ExtraSubmissions()
		if err != nil || len(further) != 1 || further[0].Repetition != 2 || further[0].Patch != "patch 2\n" {
			t.Errorf("%s: further submissions %+v, %v", when, further, err)
		}
	}
	check("after the run")
	if err := again.Folder.UpdateVerdicts(); err != nil {
		t.Fatal(err)
	}
	check("after an evaluation")
	if err := again.Folder.Close(); err != nil {
		t.Fatal(err)
	}
}

// cutOutcome removes the last record of a journal.
func cutOutcome(t *testing.T, journal string) {
	t.Helper()
	data, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	end := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	if err := os.WriteFile(journal, data[:end], 0o600); err != nil {
		t.Fatal(err)
	}
}
