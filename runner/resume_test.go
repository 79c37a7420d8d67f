package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// scriptedModel is a model that replies by the length of the conversation, and fails for some
// calls.
type scriptedModel struct {
	replies []string
	fails   map[int]error // by call, from 1, over all instances

	mu    sync.Mutex
	calls int
}

func (m *scriptedModel) For(datasets.Instance) (model.Model, error) { return m, nil }

func (m *scriptedModel) Query(_ context.Context, messages []model.Message) (model.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if err := m.fails[m.calls]; err != nil {
		return model.Reply{Cost: 0.5}, err
	}
	n := 0
	for _, msg := range messages {
		if msg.Role == model.Assistant {
			n++
		}
	}
	return model.Reply{
		Message:      model.Message{Role: model.Assistant, Content: "```bash\n" + m.replies[n] + "\n```"},
		FinishReason: model.FinishStop, Cost: 1, Tries: 1,
	}, nil
}

// echoSandbox is a sandbox whose commands print their names, and submit on request.
type echoSandbox struct {
	fakeSandbox
	suffix string // appended to the output
	code   int    // exit code
	err    error
	ran    []string
}

func (e *echoSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if slices.Equal(c.Interpreter, []string{env.RepositoryProgram}) {
		return e.fakeSandbox.Execute(ctx, c)
	}
	e.ran = append(e.ran, c.Script)
	out := c.Script + e.suffix
	if c.Script == "submit" {
		out = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n" + strings.Join(e.ran, " ")
	}
	return env.Result{Output: []byte(out), Chars: int64(len(out)), Bytes: int64(len(out)), ExitCode: e.code}, e.err
}

func quiet(folder *runner.Folder, events *[]runner.Event) *runner.EventLog {
	return runner.NewLog(folder, func(e runner.Event) { *events = append(*events, e) })
}

// resumeRun runs one instance and resumes it in another session.
type resumeRun struct {
	dir       string
	sandboxes starter
	model     *scriptedModel
	events    []runner.Event
	change    func(*runner.Batch)
}

func (r *resumeRun) run(t *testing.T, resume bool) runs.Summary {
	t.Helper()
	b := batch(t, r.dir, r.sandboxes)
	defer b.Folder.Close()
	b.Models, b.ResumeAttempts, b.MaxTries, b.Log = r.model, resume, 1, quiet(b.Folder, &r.events)
	if r.change != nil {
		r.change(b)
	}
	sum, err := b.Run(t.Context(), rows("a"))
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func echoSandboxes(suffix string) starter {
	return func(context.Context, datasets.Instance) (env.Environment, error) {
		return &echoSandbox{suffix: suffix}, nil
	}
}

// An attempt is resumed after some outcomes only.
func TestResumableAttempts(t *testing.T) {
	script := []string{"one", "two", "submit"}
	dies := func(context.Context, datasets.Instance) (env.Environment, error) {
		return &echoSandbox{err: &env.Error{Status: env.ContainerDied, Op: "run"}}, nil // after the command
	}
	noStart := func(context.Context, datasets.Instance) (env.Environment, error) {
		return nil, &env.Error{Status: env.StartFailed, Op: "start"}
	}
	failed := func(b *runner.Batch) { b.Budget.Calls = 2 }
	tests := map[string]struct {
		boxes  starter // of the first session
		fails  error   // at the third call
		change func(*runner.Batch)
		inside bool
		steps  int
	}{
		"the budget was spent":             {echoSandboxes(""), nil, failed, true, 3},
		"the user stopped it":              {echoSandboxes(""), agent.ErrInterrupted, nil, true, 4},
		"the provider was busy":            {echoSandboxes(""), &model.Error{Status: model.RateLimited}, nil, true, 4},
		"the key was wrong":                {echoSandboxes(""), &model.Error{Status: model.AuthenticationError}, nil, true, 4},
		"the provider refused the history": {echoSandboxes(""), &model.Error{Status: model.BadRequest}, nil, false, 3},
		"a defect":                         {echoSandboxes(""), errors.New("surprise"), nil, false, 3},
		"the sandbox did not start":        {noStart, nil, nil, true, 3},
		"the sandbox died":                 {dies, nil, nil, true, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &resumeRun{dir: t.TempDir(), sandboxes: tt.boxes, model: &scriptedModel{replies: script, fails: map[int]error{3: tt.fails}}, change: tt.change}
			if sum := r.run(t, false); sum.Complete() {
				t.Fatalf("the first session was not stopped: %+v", sum)
			}
			before := r.model.calls
			r.sandboxes, r.model.fails, r.change = echoSandboxes(""), nil, nil
			sum := r.run(t, true)
			res := results(t, r.dir)["a"]
			want := 2
			if tt.inside {
				want = 1
			}
			if !sum.Complete() || res.Attempt != want || res.Attempts != want || res.Steps != tt.steps {
				t.Errorf("%+v: attempt %d of %d, %d steps", sum, res.Attempt, res.Attempts, res.Steps)
			}
			if got := preds(t, r.dir)["a"]; got != "one two submit" {
				t.Errorf("in the sandbox were run %q", got)
			}
			if got, want := float64(sum.KnownCost()), float64(r.model.calls-before); got != want {
				t.Errorf("this session cost $%v by the summary, and made calls for $%v", got, want)
			}
		})
	}
}

// failing starts one sandbox whose commands fail with a different output, and then
// normal ones.
func failing() starter {
	started := false
	return func(context.Context, datasets.Instance) (env.Environment, error) {
		if started {
			return &echoSandbox{}, nil
		}
		started = true
		return &echoSandbox{suffix: " today", code: 1}, nil
	}
}

// A differing output is reported and the attempt is resumed; so is a divergence with
// Force.
func TestOutputsThatDiffer(t *testing.T) {
	tests := map[string]struct {
		boxes   starter
		force   bool
		warning string
		match   string
	}{
		"another output": {echoSandboxes(" today"), false, `the outputs of 2 rerun commands differ, the first in step 1, one: line 1 is "one today"`, "output differs"},
		"forced":         {failing(), true, "could not be resumed: in step 1, one: exit code 1, recorded exit code 0", "diverged"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: []string{"one", "two", "submit"}}}
			r.change = func(b *runner.Batch) { b.Budget.Calls = 2 }
			r.run(t, false)
			r.sandboxes, r.change, r.events = tt.boxes, func(b *runner.Batch) { b.Force = tt.force }, nil
			if sum, res := r.run(t, true), results(t, r.dir)["a"]; !tt.force && (!sum.Complete() || res.Attempt != 1) {
				t.Errorf("%+v, %+v", sum, res)
			}
			warnings := ""
			for _, e := range r.events {
				if e.Type == runner.Warning {
					warnings += e.Text + "\n"
				}
			}
			if !strings.Contains(warnings, tt.warning) {
				t.Errorf("warnings %q, want %q", warnings, tt.warning)
			}
			found := 0
			for rec, err := range trajectories.Read(filepath.Join(r.dir, "a", "attempts", "1", "journal.jsonl")) {
				if err != nil {
					t.Fatal(err)
				}
				if rec.Type == trajectories.TypeReplay && strings.Contains(string(rec.Data), `"match":"`+tt.match+`","difference":`) {
					found++
				}
			}
			if found != 2 {
				t.Errorf("%d records of commands that were run again say %q", found, tt.match)
			}
		})
	}
}

// A command that was running when its sandbox died is not rerun, and the model receives a
// message about it.
func TestCommandKillsSandbox(t *testing.T) {
	sandboxes := 0
	r := &resumeRun{dir: t.TempDir(), model: &scriptedModel{replies: []string{"one", "two", "submit"}}}
	r.sandboxes = func(context.Context, datasets.Instance) (env.Environment, error) {
		sandboxes++
		return &dyingSandbox{echoSandbox{}, sandboxes == 1}, nil
	}
	r.run(t, false)
	sum := r.run(t, true)
	if res := results(t, r.dir)["a"]; !sum.Complete() || res.Attempt != 1 || preds(t, r.dir)["a"] != "one submit" {
		t.Errorf("%+v, %+v, %q", sum, res, preds(t, r.dir)["a"])
	}
	received := ""
	tr, err := trajectories.Fold(trajectories.Read(filepath.Join(r.dir, "a", "attempts", "1", "journal.jsonl")))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tr.Entries {
		received += e.Content + "\n"
	}
	if !strings.Contains(received, "The sandbox ended while the command ran: out of memory.") || !strings.Contains(received, "The command was not run again.") {
		t.Errorf("the model received %q", received)
	}
}

// dyingSandbox is a sandbox that dies in command two.
type dyingSandbox struct {
	echoSandbox
	dies bool
}

func (m *dyingSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if m.dies && c.Script == "two" {
		return env.Result{ExitCode: -1}, &env.Error{Status: env.ContainerDied, Op: "run", Err: errors.New("out of memory")}
	}
	return m.echoSandbox.Execute(ctx, c)
}

// An attempt whose history kills its sandbox again is not resumed forever.
func TestHistoryKillsSandbox(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: []string{"two", "submit"}, fails: map[int]error{2: agent.ErrInterrupted}}}
	r.run(t, false)
	sandboxes := 0
	r.sandboxes = func(context.Context, datasets.Instance) (env.Environment, error) {
		sandboxes++
		return &dyingSandbox{echoSandbox{}, sandboxes == 1}, nil
	}
	sum := r.run(t, true)
	if res := results(t, r.dir)["a"]; !sum.Complete() || res.Attempt != 2 {
		t.Errorf("%+v, %+v", sum, res)
	}
}

func TestDivergingAttempt(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: []string{"one", "two", "submit"}}}
	r.change = func(b *runner.Batch) { b.Budget.Calls = 2 }
	r.run(t, false)
	r.sandboxes, r.change, r.events = failing(), nil, nil
	sum := r.run(t, true)
	res := results(t, r.dir)["a"]
	if !sum.Complete() || res.Attempt != 2 || res.Steps != 3 || float64(sum.KnownCost()) != 3 {
		t.Errorf("%+v, %+v", sum, res)
	}
	var events []string
	for _, e := range r.events {
		if e.Type == runner.AttemptFinished || e.Phase == runner.PhaseRebuilding {
			events = append(events, fmt.Sprintf("%d %v %s %d/%d", e.Attempt, e.WillRetry, e.Text, e.Done, e.Total))
		}
	}
	want := []string{"1 false  1/2", "1 true could not be resumed: in step 1, one: ", "2 false  0/0"}
	if len(events) != len(want) {
		t.Fatalf("events %q", events)
	}
	for i, w := range want {
		if !strings.HasPrefix(events[i], w) {
			t.Errorf("event %q, want %q", events[i], w)
		}
	}
	if !strings.Contains(events[1], "exit code 1, recorded exit code 0") || !strings.Contains(events[1], "one today") {
		t.Errorf("the event lacks the difference: %q", events[1])
	}
	// It cannot be resumed again.
	out, ended, err := trajectories.ReadOutcome(filepath.Join(r.dir, "a", "attempts", "1", "journal.jsonl"))
	if err != nil || !ended || out.Class != trajectories.Interrupted || out.ExitStatus != "Diverged" || out.Steps != 2 {
		t.Errorf("%+v, %v, %v", out, ended, err)
	}
}

// A session that fails before its agent starts does not change the totals.
func TestSandboxFailsToStart(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: []string{"one", "two", "submit"}}}
	r.change = func(b *runner.Batch) { b.Budget.Calls = 2 }
	r.run(t, false)
	r.change = nil
	r.sandboxes = func(context.Context, datasets.Instance) (env.Environment, error) {
		return nil, &env.Error{Status: env.DaemonUnavailable, Op: "start"}
	}
	r.run(t, true)
	if res := results(t, r.dir)["a"]; res.Attempts != 1 || res.Steps != 2 || float64(res.KnownCost()) != 2 {
		t.Errorf("%+v", res)
	}
	r.sandboxes = echoSandboxes("")
	if sum := r.run(t, true); !sum.Complete() || results(t, r.dir)["a"].Attempts != 1 || float64(results(t, r.dir)["a"].KnownCost()) != 3 {
		t.Errorf("%+v, %+v", sum, results(t, r.dir)["a"])
	}
}

// A journal of another instance is not resumed.
func TestJournalOfAnotherInstance(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), sandboxes: echoSandboxes(""), model: &scriptedModel{replies: []string{"one", "two", "submit"}}}
	r.change = func(b *runner.Batch) { b.Budget.Calls = 2 }
	r.run(t, false)
	path := filepath.Join(r.dir, "a", "attempts", "1", "journal.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(data), `"instance_id":"a"`, `"instance_id":"b"`, 1)
	if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	r.change, r.events = nil, nil
	if sum := r.run(t, true); !sum.Complete() || results(t, r.dir)["a"].Attempt != 2 {
		t.Errorf("%+v", sum)
	}
	warned := false
	for _, e := range r.events {
		warned = warned || e.Type == runner.Warning && strings.Contains(e.Text, `its journal is that of attempt 1 of "b"`)
	}
	if after, err := os.ReadFile(path); !warned || err != nil || string(after) != other {
		t.Errorf("warned %v, or the journal changed: %v", warned, err)
	}
}
