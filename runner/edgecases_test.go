package runner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// unpriced is a model with unknown costs.
type unpriced struct{ *scriptedModel }

func (m unpriced) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	r, err := m.scriptedModel.Query(ctx, messages)
	r.Cost, r.Usage.Unpriced = 0, 1
	return r, err
}

// The calls of a resumed attempt are counted once, including unpriced ones.
func TestUnpricedCallsOfResumedAttempt(t *testing.T) {
	r := &resumeRun{
		dir: t.TempDir(), sandboxes: echoSandboxes(""),
		model: &scriptedModel{replies: []string{"one", "submit"}, fails: map[int]error{2: &model.Error{Status: model.RateLimited}}},
	}
	r.change = func(b *runner.Batch) { b.MaxTries, b.Models = 2, modelFor{unpriced{r.model}} }
	if sum := r.run(t, true); sum.Unpriced != 3 || sum.Cost != nil || r.model.calls != 3 {
		t.Errorf("%d calls, and the summary has %d: %+v", r.model.calls, sum.Unpriced, sum)
	}
}

// A journal without a header, from a killed process, is ignored: the attempt before
// it is the newest of its repetition.
func TestPartialHeader(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: []string{"one", "two", "submit"}}}
	r.change = func(b *runner.Batch) { b.Budget.Calls = 2 }
	r.run(t, false)
	for n, text := range map[string]string{"2": "", "3": `{"id":1,"parent_id":0,"type":"head`} {
		dir := filepath.Join(r.dir, "a", "attempts", n)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "journal.jsonl"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	r.change = nil
	sum := r.run(t, true)
	if res := results(t, r.dir)["a"]; !sum.Complete() || res.Attempt != 1 || res.Attempts != 3 || res.Steps != 3 {
		t.Errorf("%+v, %+v", sum, res)
	}
}

// Imported and inherited costs do not count towards the budget.
func TestBudgetIgnoresInheritedCost(t *testing.T) {
	three := []string{"one", "two", "submit"}
	parent := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: three}}
	parent.run(t, false)
	dir := t.TempDir()
	folder, err := runner.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	in, err := folder.Importer("1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Add("other", runner.ImportSource{SHA256: "1"}, importedRecords(t, "1", "x")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(in.Close(), folder.Close()); err != nil {
		t.Fatal(err)
	}
	branch := &resumeRun{dir: dir, sandboxes: echoSandboxes(""), model: &scriptedModel{replies: three}}
	branch.change = func(b *runner.Batch) {
		p, err := runner.NewParent(trajectories.Origin{Step: 1, SHA256: "ab"}, trajectories.Read(filepath.Join(parent.dir, "a", "attempts", "1", "journal.jsonl")))
		if err != nil {
			t.Fatal(err)
		}
		b.Branch = &runner.Branch{Parents: map[string]runner.BranchParent{"a": p}}
		b.Budget = runner.Budget{Calls: 1, Cost: 1}
	}
	if sum := branch.run(t, false); !sum.BudgetExhausted || float64(sum.KnownCost()) != 1 || branch.model.calls != 1 {
		t.Fatalf("%d calls: %+v", branch.model.calls, sum)
	}
	// One of two calls is left, and it submits.
	branch.change = func(b *runner.Batch) { b.Budget = runner.Budget{Calls: 2, Cost: 2} }
	sum := branch.run(t, true)
	if res := results(t, dir)["a"]; !sum.Complete() || float64(sum.KnownCost()) != 1 || res.Steps != 3 || float64(res.KnownCost()) != 2 {
		t.Errorf("%+v, %+v", sum, res)
	}
	checkJournals(t, dir)
}

// checkJournals validates every journal of a run, including its totals.
func checkJournals(t *testing.T, dir string) {
	t.Helper()
	journals, err := filepath.Glob(filepath.Join(dir, "*", "attempts", "*", "journal.jsonl"))
	if err != nil || len(journals) == 0 {
		t.Fatal(journals, err)
	}
	for _, path := range journals {
		a, err := trajectories.Fold(trajectories.CheckOrder(trajectories.Read(path)))
		if err != nil {
			t.Fatal(err)
		}
		if o := a.Outcome; o != nil && (trajectories.Spending{Steps: o.Steps, Usage: o.Usage, Cost: o.Cost}) != a.Totals.Spent() {
			t.Errorf("%s: outcome %+v, calls %+v", path, o, a.Totals.Spent())
		}
	}
}

// With repetitions, interruptions, retries and reruns, each repetition resumes its own newest
// attempt, and the totals in every journal are correct.
func TestResumedRepetitions(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: []string{"one", "two", "submit"}}}
	several := func(calls int, redo bool) func(*runner.Batch) {
		return func(b *runner.Batch) { b.Repetitions, b.Workers, b.Budget.Calls, b.Redo = 2, 1, calls, redo }
	}
	r.change = several(5, false) // the first, and two calls of the second
	if sum := r.run(t, false); sum.Complete() || sum.Classes[trajectories.Interrupted] != 1 {
		t.Fatalf("%+v", sum)
	}
	r.change = several(0, false)
	sum := r.run(t, true)
	want := map[int]string{1: "submitted 1", 2: "submitted 2"}
	if got := repetitionsOf(t, r.dir, "a"); !sum.Complete() || sum.Skipped != 1 || got[1] != want[1] || got[2] != want[2] || r.model.calls != 6 {
		t.Errorf("%d calls, %v: %+v", r.model.calls, got, sum)
	}
	r.change = several(10, true) // a rerun: four more calls
	if sum := r.run(t, true); !sum.BudgetExhausted || float64(sum.KnownCost()) != 4 {
		t.Errorf("%+v", sum)
	}
	// The first repetition has its new result, the second the old one.
	if got := repetitionsOf(t, r.dir, "a"); got[1] != "submitted 3" || got[2] != "submitted 2" {
		t.Errorf("after all again: %v", got)
	}
	checkJournals(t, r.dir)
}

// A trajectory that is older than its journal is outdated.
func TestOutdatedTrajectory(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: []string{"one", "submit"}}}
	r.run(t, false)
	path := filepath.Join(r.dir, "a", "a.traj.json")
	past := time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(path, []byte("{}"), 0o600), os.Chtimes(path, past, past)); err != nil {
		t.Fatal(err)
	}
	r.run(t, false)
	if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), `"api_calls":2`) {
		t.Errorf("%v: %.100s", err, data)
	}
}

// A damaged journal is reported and does not stop the run.
func TestDamagedJournal(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: []string{"one", "submit"}}}
	r.run(t, false)
	journal := filepath.Join(r.dir, "a", "attempts", "1", "journal.jsonl")
	data, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(data), `"id":3,`, `"id":3?`, 1)
	if err := errors.Join(os.WriteFile(journal, []byte(broken), 0o600), os.Remove(filepath.Join(r.dir, "a", "a.traj.json"))); err != nil {
		t.Fatal(err)
	}
	r.events = nil
	if sum := r.run(t, false); !sum.Complete() {
		t.Errorf("%+v", sum)
	}
	for _, e := range r.events {
		if e.Type == runner.Warning && strings.Contains(e.Text, "attempt 1 of a: ") && strings.Contains(e.Text, "journal.jsonl:3") {
			return
		}
	}
	t.Errorf("nobody says so: %+v", r.events)
}

// An import does not replace a repetition.
func TestImportWithRepetitions(t *testing.T) {
	dir := t.TempDir()
	where := filepath.Join(dir, "a", "attempts", "1")
	if err := errors.Join(os.MkdirAll(where, 0o755), os.WriteFile(filepath.Join(dir, "run.json"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	// The second of two repetitions was started first and then killed.
	j, err := trajectories.Create(filepath.Join(where, "journal.jsonl"), trajectories.Header{InstanceID: "a", Attempt: 1, Repetition: 2})
	if err == nil {
		_, err = j.Append(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Limit})
	}
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	folder, err := runner.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	in, err := folder.Importer("1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := in.Add("a", runner.ImportSource{SHA256: "1"}, importedRecords(t, "1", "x")); err != nil || got.Attempt != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := errors.Join(in.Close(), folder.Close()); err != nil {
		t.Fatal(err)
	}
	if got := repetitionsOf(t, dir, "a"); len(got) != 2 || got[2] != "limit 1" || got[3] != "submitted 2" {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "a.traj.json")); err == nil {
		t.Error("a further sample stands for the instance")
	}
}

// The wall time of a resumed branch includes both sessions.
func TestBranchWallTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	p := trajectories.Origin{Record: 6, Step: 2}
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	past := func(yield func(trajectories.Record, error) bool) {
		for i, r := range []struct {
			kind trajectories.Type
			data any
		}{
			{trajectories.TypeHeader, trajectories.Header{Format: trajectories.Format}},
			{trajectories.TypeCall, trajectories.Call{Duration: trajectories.Seconds(10 * time.Second)}},
			{trajectories.TypeMessage, trajectories.Message{Cause: trajectories.CauseReply}},
			{trajectories.TypeResume, trajectories.Resume{Record: 3}},
			{trajectories.TypeCall, trajectories.Call{Duration: trajectories.Seconds(20 * time.Second)}},
			{trajectories.TypeMessage, trajectories.Message{Cause: trajectories.CauseReply}},
		} {
			data, err := trajectories.EncodeJSON(r.data)
			if i == 3 || i == 4 {
				at = at.Add(time.Hour) // between two sessions
			}
			if !yield(trajectories.Record{ID: i + 1, Parent: i, Type: r.kind, Time: at, Data: data}, err) {
				return
			}
		}
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	j, err := trajectories.NewFork(f, trajectories.Header{Origin: &p}, past)
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := agent.ReadResumeState(trajectories.Read(path))
	if err != nil || got.Attempt.Totals.ActiveTime() != 30*time.Second {
		t.Errorf("worked for %v, %v", got.Attempt.Totals.ActiveTime(), err)
	}
}

// modelFor returns the same model for all instances.
type modelFor struct{ model.Model }

func (m modelFor) For(datasets.Instance) (model.Model, error) { return m.Model, nil }

// stoppingSandbox is a sandbox in which the user interrupts a command.
type stoppingSandbox struct {
	echoSandbox
	at   string
	stop func()
}

func (s *stoppingSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.Script == s.at {
		s.stop()
		<-ctx.Done()
		return env.Result{}, ctx.Err()
	}
	return s.echoSandbox.Execute(ctx, c)
}

// An attempt that is interrupted while rebuilding is unchanged.
func TestInterruptedWhileRebuilding(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: []string{"one", "two", "three", "submit"}}}
	r.change = func(b *runner.Batch) { b.Budget.Calls = 3 }
	r.run(t, false)
	r.change = nil
	for _, at := range []string{"one", "two", "two"} {
		b := batch(t, r.dir, nil)
		ctx, stop := context.WithCancelCause(t.Context())
		b.Sandboxes = starter(func(context.Context, datasets.Instance) (env.Environment, error) {
			return &stoppingSandbox{at: at, stop: func() { stop(agent.ErrInterrupted) }}, nil
		})
		b.Models, b.ResumeAttempts, b.MaxTries = r.model, true, 1
		sum, err := b.Run(ctx, rows("a"))
		if err := errors.Join(err, b.Folder.Close()); err != nil {
			t.Fatal(err)
		}
		res := results(t, r.dir)["a"]
		if sum.Classes[trajectories.Interrupted] != 1 || float64(sum.KnownCost()) != 0 || res.Attempts != 1 || res.Steps != 3 || float64(res.KnownCost()) != 3 || res.ExitStatus == "Diverged" {
			t.Errorf("stopped at %s: %+v, %+v", at, sum, res)
		}
	}
	sum := r.run(t, true)
	if res := results(t, r.dir)["a"]; !sum.Complete() || res.Attempts != 1 || res.Steps != 4 || float64(sum.KnownCost()) != 1 {
		t.Errorf("%+v, %+v", sum, res)
	}
	if got := preds(t, r.dir)["a"]; got != "one two three submit" {
		t.Errorf("in the sandbox were run %q", got)
	}
	checkJournals(t, r.dir)
}
