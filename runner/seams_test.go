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
	"github.com/minibench/mini/trajectories/check"
)

// unpriced is a model whose calls nobody knows the cost of.
type unpriced struct{ *turns }

func (m unpriced) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	r, err := m.turns.Query(ctx, messages)
	r.Cost, r.Usage.Unpriced = 0, 1
	return r, err
}

// A try that goes on inside its attempt has its calls counted once, those without
// a price too.
func TestUnpricedCallsOfAnAttemptThatGoesOn(t *testing.T) {
	r := &resumeRun{
		dir: t.TempDir(), boxes: echoes(""),
		model: &turns{replies: []string{"one", "submit"}, fails: map[int]error{2: &model.Error{Status: model.RateLimited}}},
	}
	r.change = func(b *runner.Batch) { b.MaxTries, b.Models = 2, modelFor{unpriced{r.model}} }
	if sum := r.run(t, true); sum.Unpriced != 3 || sum.Cost != nil || r.model.calls != 3 {
		t.Errorf("%d calls, and the summary has %d: %+v", r.model.calls, sum.Unpriced, sum)
	}
}

// A mini that was killed as it made a journal leaves one that is nobody's: what
// stands before it is still the newest of its sample.
func TestATornHeaderHidesNothing(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: []string{"one", "two", "submit"}}}
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

// What somebody else paid is not of this run's budget.
func TestBudgetWithoutWhatWasPaidElsewhere(t *testing.T) {
	three := []string{"one", "two", "submit"}
	parent := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: three}}
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
	if _, err := in.Add("other", runner.Origin{SHA256: "1"}, made(t, "1", "x")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(in.Close(), folder.Close()); err != nil {
		t.Fatal(err)
	}
	branch := &resumeRun{dir: dir, boxes: echoes(""), model: &turns{replies: three}}
	branch.change = func(b *runner.Batch) {
		p, err := runner.NewParent(trajectories.Origin{Step: 1, SHA256: "ab"}, trajectories.Read(filepath.Join(parent.dir, "a", "attempts", "1", "journal.jsonl")))
		if err != nil {
			t.Fatal(err)
		}
		b.Branch = &runner.Branch{Parents: map[string]runner.Parent{"a": p}}
		b.Budget = runner.Budget{Calls: 1, Cost: 1}
	}
	if sum := branch.run(t, false); !sum.Exhausted || float64(sum.Spent()) != 1 || branch.model.calls != 1 {
		t.Fatalf("%d calls: %+v", branch.model.calls, sum)
	}
	// One call of two is left, and it hands in the work.
	branch.change = func(b *runner.Batch) { b.Budget = runner.Budget{Calls: 2, Cost: 2} }
	sum := branch.run(t, true)
	if res := results(t, dir)["a"]; !sum.Complete() || float64(sum.Spent()) != 1 || res.Steps != 3 || float64(res.Spent()) != 2 {
		t.Errorf("%+v, %+v", sum, res)
	}
	sound(t, dir)
}

// sound holds every journal of a run to the rules, the sums of calls among them.
func sound(t *testing.T, dir string) {
	t.Helper()
	journals, err := filepath.Glob(filepath.Join(dir, "*", "attempts", "*", "journal.jsonl"))
	if err != nil || len(journals) == 0 {
		t.Fatal(journals, err)
	}
	for _, path := range journals {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		report := check.Reader(path, f, check.Options{})
		for _, p := range report.Problems {
			t.Errorf("%s:%d: %s", path, p.Line, p)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Samples, stops, more tries and all again: each sample goes on inside its own
// newest attempt, and every journal adds up.
func TestSamplesThatGoOn(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: []string{"one", "two", "submit"}}}
	several := func(calls int, redo bool) func(*runner.Batch) {
		return func(b *runner.Batch) { b.Samples, b.Workers, b.Budget.Calls, b.Redo = 2, 1, calls, redo }
	}
	r.change = several(5, false) // the first, and two calls of the second
	if sum := r.run(t, false); sum.Complete() || sum.Classes[trajectories.Interrupted] != 1 {
		t.Fatalf("%+v", sum)
	}
	r.change = several(0, false)
	sum := r.run(t, true)
	want := map[int]string{1: "submitted 1", 2: "submitted 2"}
	if got := samplesOf(t, r.dir, "a"); !sum.Complete() || sum.Skipped != 1 || got[1] != want[1] || got[2] != want[2] || r.model.calls != 6 {
		t.Errorf("%d calls, %v: %+v", r.model.calls, got, sum)
	}
	r.change = several(10, true) // all again: four calls more
	if sum := r.run(t, true); !sum.Exhausted || float64(sum.Spent()) != 4 {
		t.Errorf("%+v", sum)
	}
	// The first has its new result, the second the one it had.
	if got := samplesOf(t, r.dir, "a"); got[1] != "submitted 3" || got[2] != "submitted 2" {
		t.Errorf("after all again: %v", got)
	}
	sound(t, r.dir)
}

// A trajectory that is older than its journal was derived from less.
func TestATrajectoryThatIsBehind(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: []string{"one", "submit"}}}
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

// A journal that nothing can be derived from is told of, and the rest goes on.
func TestADamagedJournalStopsNobody(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: []string{"one", "submit"}}}
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

// An import beside samples takes the place of none.
func TestImportBesideSamples(t *testing.T) {
	dir := t.TempDir()
	where := filepath.Join(dir, "a", "attempts", "1")
	if err := errors.Join(os.MkdirAll(where, 0o755), os.WriteFile(filepath.Join(dir, "run.json"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	// The second of two samples was begun first, and the mini killed then.
	j, err := trajectories.Create(filepath.Join(where, "journal.jsonl"), trajectories.Header{InstanceID: "a", Attempt: 1, Sample: 2})
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
	if got, err := in.Add("a", runner.Origin{SHA256: "1"}, made(t, "1", "x")); err != nil || got.Attempt != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := errors.Join(in.Close(), folder.Close()); err != nil {
		t.Fatal(err)
	}
	if got := samplesOf(t, dir, "a"); len(got) != 2 || got[2] != "limit 1" || got[3] != "submitted 2" {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "a.traj.json")); err == nil {
		t.Error("a further sample stands for the instance")
	}
}

// A branch of an attempt that was resumed has worked as long as both its sittings.
func TestABranchHasWorkedAllSittings(t *testing.T) {
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
			data, err := trajectories.Encode(r.data)
			if i == 3 || i == 4 {
				at = at.Add(time.Hour) // nobody was there
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
	j, err := trajectories.ForkIn(f, trajectories.Header{Origin: &p}, past)
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := agent.Recall(trajectories.Read(path))
	if err != nil || got.Worked != 30*time.Second {
		t.Errorf("worked for %v, %v", got.Worked, err)
	}
}

// modelFor gives everybody the same model.
type modelFor struct{ model.Model }

func (m modelFor) For(datasets.Instance) (model.Model, error) { return m.Model, nil }

// stopping is a sandbox that the user stops at a command.
type stopping struct {
	echoing
	at   string
	stop func()
}

func (s *stopping) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.Script == s.at {
		s.stop()
		<-ctx.Done()
		return env.Result{}, ctx.Err()
	}
	return s.echoing.Execute(ctx, c)
}

// Stopped while its sandbox is made anew, an attempt is where it was.
func TestStoppedWhileItIsRebuilt(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: []string{"one", "two", "three", "submit"}}}
	r.change = func(b *runner.Batch) { b.Budget.Calls = 3 }
	r.run(t, false)
	r.change = nil
	for _, at := range []string{"one", "two", "two"} {
		b := batch(t, r.dir, nil)
		ctx, stop := context.WithCancelCause(t.Context())
		b.Sandboxes = starter(func(context.Context, datasets.Instance) (env.Environment, error) {
			return &stopping{at: at, stop: func() { stop(agent.ErrInterrupted) }}, nil
		})
		b.Models, b.ResumeAttempts, b.MaxTries = r.model, true, 1
		sum, err := b.Run(ctx, rows("a"))
		if err := errors.Join(err, b.Folder.Close()); err != nil {
			t.Fatal(err)
		}
		res := results(t, r.dir)["a"]
		if sum.Classes[trajectories.Interrupted] != 1 || float64(sum.Spent()) != 0 || res.Attempts != 1 || res.Steps != 3 || float64(res.Spent()) != 3 || res.ExitStatus == "Diverged" {
			t.Errorf("stopped at %s: %+v, %+v", at, sum, res)
		}
	}
	sum := r.run(t, true)
	if res := results(t, r.dir)["a"]; !sum.Complete() || res.Attempts != 1 || res.Steps != 4 || float64(sum.Spent()) != 1 {
		t.Errorf("%+v, %+v", sum, res)
	}
	if got := preds(t, r.dir)["a"]; got != "one two three submit" {
		t.Errorf("in the sandbox were run %q", got)
	}
	sound(t, r.dir)
}
