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

// What results.json says of samples may be anything, where it is all that is left.
func TestSamplesOfAStrangersResults(t *testing.T) {
	dir := t.TempDir()
	text := `{"format":"mini-1","instances":{"a":{"class":"submitted","samples":[{"sample":1,"class":"submitted"},{"sample":2,"class":"limit"},{"sample":1099511627776,"class":"submitted"},{"sample":-1,"class":"submitted"}]},"b":{"class":"submitted"}}}`
	if err := os.WriteFile(filepath.Join(dir, "results.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := runner.ReadRun(dir)
	if err != nil || len(run.Instances) != 2 {
		t.Fatalf("%+v, %v", run, err)
	}
	var got []int
	for _, in := range run.Instances {
		for _, s := range in.Samples {
			got = append(got, s.Sample)
		}
	}
	if diff := cmp.Diff([]int{1, 2, 1}, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

// A run that was killed at the first sample has the second: nothing of that is
// lost, or stands for the instance.
func TestOnlyAFurtherSampleHasAResult(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, numbered())
	b.Workers, b.Samples = 1, 2
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
	judge(t, dir, "eval", "m", "a", "resolved", "patch 2\n", 0)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(agent.ErrInterrupted) // before anything is begun
	again.Samples = 2
	if sum, err := again.Run(ctx, rows("a")); err != nil || sum.Unstarted != 1 || sum.Classes[trajectories.Submitted] != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	check := func(when string) {
		t.Helper()
		res, ok := results(t, dir)["a"]
		if !ok || res.Class != "" || res.Attempts != 2 || len(res.Samples) != 1 || res.Samples[0].Sample != 2 ||
			res.Samples[0].Verdict == nil || *res.Samples[0].Verdict != "resolved" {
			t.Errorf("%s: results.json has %+v", when, res)
		}
		if got := preds(t, dir); len(got) > 0 {
			t.Errorf("%s: preds.json has %v", when, got)
		}
		run, err := runner.ReadRun(dir)
		if err != nil || len(run.Instances) != 1 {
			t.Fatal(run, err)
		}
		in := run.Instances[0]
		if in.Result != nil || in.Missing(2) != 1 || len(in.Samples) != 1 || in.Samples[0].Verdict == nil {
			t.Errorf("%s: %+v", when, in)
		}
		further, err := run.Further()
		if err != nil || len(further) != 1 || further[0].Sample != 2 || further[0].Patch != "patch 2\n" {
			t.Errorf("%s: further submissions %+v, %v", when, further, err)
		}
	}
	check("after the run")
	if err := again.Folder.EnterVerdicts(); err != nil {
		t.Fatal(err)
	}
	check("after an evaluation")
	if err := again.Folder.Close(); err != nil {
		t.Fatal(err)
	}
}

// cutOutcome takes the last record of a journal away.
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
