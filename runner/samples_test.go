package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// numbered submits another patch each time, and fails where it is told to.
func numbered(fails ...int64) starter {
	var starts atomic.Int64
	return func(context.Context, datasets.Instance) (env.Environment, error) {
		n := starts.Add(1)
		for _, f := range fails {
			if n == f {
				return nil, &env.Error{Status: env.ContainerDied, Err: errors.New("gone")}
			}
		}
		return &room{output: fmt.Sprintf("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\npatch %d\n", n)}, nil
	}
}

// samplesOf are class and attempt of each sample, as results.json has them.
func samplesOf(t *testing.T, dir, id string) map[int]string {
	t.Helper()
	got := map[int]string{}
	for _, s := range results(t, dir)[id].Samples {
		got[s.Sample] = fmt.Sprintf("%s %d", s.Class, s.Attempt)
	}
	return got
}

// Samples stand side by side: a try that failed is made again for the same one,
// and preds.json has the first.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := batch(t, dir, numbered(2))
		b.Workers, b.Samples = 1, 3
		told := map[int]string{}
		b.Submitted = func(_ datasets.Instance, sample int, p trajectories.Prediction) { told[sample] = p.Patch }
		sum, err := b.Run(t.Context(), rows("a"))
		if err != nil || !sum.Complete() || sum.Asked() != 3 || sum.Classes[trajectories.Submitted] != 3 {
			t.Fatalf("%+v, %v", sum, err)
		}
		want := map[int]string{1: "submitted 1", 2: "submitted 3", 3: "submitted 4"}
		if diff := cmp.Diff(want, samplesOf(t, dir, "a")); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[int]string{1: "patch 1\n", 2: "patch 3\n", 3: "patch 4\n"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if got := preds(t, dir)["a"]; got != "patch 1\n" {
			t.Errorf("preds.json has %q", got)
		}
		run, err := runner.ReadRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		var tries []int
		for _, a := range run.Instances[0].Attempts {
			tries = append(tries, a.Sample)
		}
		if diff := cmp.Diff([]int{1, 2, 2, 3}, tries); diff != "" {
			t.Errorf("attempts are of samples (-want +got):\n%s", diff)
		}
		further, err := run.Further()
		if err != nil || len(further) != 2 || further[0].Sample != 2 || further[0].Patch != "patch 3\n" || further[0].Model != "m" {
			t.Errorf("further submissions %+v, %v", further, err)
		}
	})
}

// More are asked for later, and only those are made. Doing all again replaces
// each sample by its own newest.
func TestMoreSamples(t *testing.T) {
	dir := t.TempDir()
	start := numbered()
	run := func(k int, redo bool) runner.Summary {
		t.Helper()
		b := batch(t, dir, start)
		b.Workers, b.Samples, b.Redo = 1, k, redo
		sum, err := b.Run(t.Context(), rows("a", "b"))
		if err := errors.Join(err, b.Folder.Close()); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if sum := run(0, false); sum.Skipped != 0 || !sum.Complete() || sum.Samples != 0 {
		t.Errorf("one each: %+v", sum)
	}
	if sum := run(2, false); sum.Skipped != 2 || !sum.Complete() {
		t.Errorf("one more each: %+v", sum)
	}
	if got := preds(t, dir); got["a"] != "patch 1\n" || got["b"] != "patch 2\n" {
		t.Errorf("preds.json: %v", got)
	}
	if sum := run(2, false); sum.Skipped != 4 {
		t.Errorf("nothing is left to do: %+v", sum)
	}
	run(2, true)
	if diff := cmp.Diff(map[int]string{1: "submitted 3", 2: "submitted 4"}, samplesOf(t, dir, "a")); diff != "" {
		t.Errorf("after all again (-want +got):\n%s", diff)
	}
	if got := preds(t, dir)["a"]; got != "patch 5\n" {
		t.Errorf("preds.json after all again: %q", got)
	}
}

// A sample that is missing is made on the next start, and the others stay.
func TestSamplesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := batch(t, dir, numbered(2, 3, 4)) // all tries of the second
		first.Workers, first.Samples = 1, 3
		sum, err := first.Run(t.Context(), rows("a"))
		if err != nil || sum.Complete() || sum.Classes[trajectories.Environment] != 1 {
			t.Fatalf("%+v, %v", sum, err)
		}
		if err := first.Folder.Close(); err != nil {
			t.Fatal(err)
		}
		second := batch(t, dir, submits)
		second.Samples = 3
		sum, err = second.Run(t.Context(), rows("a"))
		if err != nil || !sum.Complete() || sum.Skipped != 2 {
			t.Errorf("%+v, %v", sum, err)
		}
		want := map[int]string{1: "submitted 1", 2: "submitted 6", 3: "submitted 5"}
		if diff := cmp.Diff(want, samplesOf(t, dir, "a")); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
	})
}

// A journal may be anybody's: a number beyond all bounds takes no memory.
func TestSampleOfAStranger(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, submits)
	if _, err := b.Run(t.Context(), rows("a")); err != nil {
		t.Fatal(err)
	}
	where := filepath.Join(dir, "a", "attempts", "2")
	if err := os.MkdirAll(where, 0o755); err != nil {
		t.Fatal(err)
	}
	j, err := trajectories.Create(filepath.Join(where, "journal.jsonl"), trajectories.Header{InstanceID: "a", Attempt: 2, Sample: 1 << 40})
	if err == nil {
		_, err = j.Append(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Submitted})
	}
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	run, err := runner.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := run.Instances[0].Attempts[1].Sample; got != runner.MaxSamples {
		t.Errorf("sample %d", got)
	}
}
