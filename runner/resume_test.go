package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// turns is a model that goes by how far the conversation has come, and fails at
// some calls.
type turns struct {
	replies []string
	fails   map[int]error // by call, from 1, of all instances

	mu    sync.Mutex
	calls int
}

func (m *turns) For(datasets.Instance) (model.Model, error) { return m, nil }

func (m *turns) Query(_ context.Context, messages []model.Message) (model.Reply, error) {
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
		Message: model.Message{Role: model.Assistant, Content: "```bash\n" + m.replies[n] + "\n```"},
		Finish:  model.FinishStop, Cost: 1, Tries: 1,
	}, nil
}

// echoing is a sandbox whose commands say what they are, and submit when asked.
type echoing struct {
	room
	twist string // added to what they say
	code  int    // they end with
	err   error
	ran   []string
}

func (e *echoing) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if strings.Contains(c.Script, "rev-parse") {
		return e.room.Execute(ctx, c)
	}
	e.ran = append(e.ran, c.Script)
	out := c.Script + e.twist
	if c.Script == "submit" {
		out = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n" + strings.Join(e.ran, " ")
	}
	return env.Result{Output: []byte(out), Chars: int64(len(out)), Bytes: int64(len(out)), ExitCode: e.code}, e.err
}

func quiet(folder *runner.Folder, events *[]runner.Event) *runner.Log {
	return runner.NewLog(folder, func(e runner.Event) { *events = append(*events, e) })
}

// resumeRun runs one instance, and with another mini goes on.
type resumeRun struct {
	dir    string
	boxes  starter
	model  *turns
	events []runner.Event
	change func(*runner.Batch)
}

func (r *resumeRun) run(t *testing.T, resume bool) runner.Summary {
	t.Helper()
	b := batch(t, r.dir, r.boxes)
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

func echoes(twist string) starter {
	return func(context.Context, datasets.Instance) (env.Environment, error) { return &echoing{twist: twist}, nil }
}

// Which endings are gone on from, and what that comes to.
func TestWhichAttemptsGoOn(t *testing.T) {
	script := []string{"one", "two", "submit"}
	dies := func(context.Context, datasets.Instance) (env.Environment, error) {
		return &echoing{err: &env.Error{Status: env.ContainerDied, Op: "run"}}, nil // after the command
	}
	noStart := func(context.Context, datasets.Instance) (env.Environment, error) {
		return nil, &env.Error{Status: env.StartFailed, Op: "start"}
	}
	broke := func(b *runner.Batch) { b.Budget.Calls = 2 }
	tests := map[string]struct {
		boxes  starter // of the first session
		fails  error   // at the third call
		change func(*runner.Batch)
		inside bool
		steps  int
	}{
		"the budget was spent":             {echoes(""), nil, broke, true, 3},
		"the user stopped it":              {echoes(""), agent.ErrInterrupted, nil, true, 4},
		"the provider was busy":            {echoes(""), &model.Error{Status: model.RateLimited}, nil, true, 4},
		"the key was wrong":                {echoes(""), &model.Error{Status: model.AuthenticationError}, nil, true, 4},
		"the provider refused the history": {echoes(""), &model.Error{Status: model.BadRequest}, nil, false, 3},
		"a defect":                         {echoes(""), errors.New("surprise"), nil, false, 3},
		"the sandbox did not start":        {noStart, nil, nil, true, 3},
		"the sandbox died":                 {dies, nil, nil, true, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &resumeRun{dir: t.TempDir(), boxes: tt.boxes, model: &turns{replies: script, fails: map[int]error{3: tt.fails}}, change: tt.change}
			if sum := r.run(t, false); sum.Complete() {
				t.Fatalf("the first session was not stopped: %+v", sum)
			}
			before := r.model.calls
			r.boxes, r.model.fails, r.change = echoes(""), nil, nil
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
			if got, want := float64(sum.Spent()), float64(r.model.calls-before); got != want {
				t.Errorf("this session cost $%v by the summary, and made calls for $%v", got, want)
			}
		})
	}
}

// Tried again in the same run, a failure of the provider costs no step twice.
func TestTriesGoOnInsideAnAttempt(t *testing.T) {
	r := &resumeRun{
		dir: t.TempDir(), boxes: echoes(""),
		model:  &turns{replies: []string{"one", "submit"}, fails: map[int]error{2: &model.Error{Status: model.RateLimited}}},
		change: func(b *runner.Batch) { b.MaxTries = 2 },
	}
	sum := r.run(t, true)
	res := results(t, r.dir)["a"]
	if !sum.Complete() || res.Attempts != 1 || res.Steps != 3 || float64(sum.Spent()) != 2.5 {
		t.Errorf("%+v, %+v", sum, res)
	}
}

// failing starts one sandbox whose commands say something else and fail, and then
// sandboxes as before.
func failing() starter {
	started := false
	return func(context.Context, datasets.Instance) (env.Environment, error) {
		if started {
			return &echoing{}, nil
		}
		started = true
		return &echoing{twist: " today", code: 1}, nil
	}
}

// An output that differs is listed, and the attempt goes on; so does one that
// diverges, where that is forced.
func TestOutputsThatDiffer(t *testing.T) {
	tests := map[string]struct {
		boxes starter
		force bool
		said  string
		match string
	}{
		"another output": {echoes(" today"), false, `the outputs of 2 commands that were run again differ, the first in step 1, one: line 1 is "one today"`, "output differs"},
		"forced":         {failing(), true, "could not be resumed: in step 1, one: exit code 1, recorded exit code 0", "diverged"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: []string{"one", "two", "submit"}}}
			r.change = func(b *runner.Batch) { b.Budget.Calls = 2 }
			r.run(t, false)
			r.boxes, r.change, r.events = tt.boxes, func(b *runner.Batch) { b.Force = tt.force }, nil
			if sum, res := r.run(t, true), results(t, r.dir)["a"]; !tt.force && (!sum.Complete() || res.Attempt != 1) {
				t.Errorf("%+v, %+v", sum, res)
			}
			said := ""
			for _, e := range r.events {
				if e.Type == runner.Warning {
					said += e.Text + "\n"
				}
			}
			if !strings.Contains(said, tt.said) {
				t.Errorf("said %q, want %q", said, tt.said)
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

// A command that was running when its sandbox died is not run again: the model is
// told.
func TestACommandThatEndedItsSandbox(t *testing.T) {
	boxes := 0
	r := &resumeRun{dir: t.TempDir(), model: &turns{replies: []string{"one", "two", "submit"}}}
	r.boxes = func(context.Context, datasets.Instance) (env.Environment, error) {
		boxes++
		return &dying{echoing{}, boxes == 1}, nil
	}
	r.run(t, false)
	sum := r.run(t, true)
	if res := results(t, r.dir)["a"]; !sum.Complete() || res.Attempt != 1 || preds(t, r.dir)["a"] != "one submit" {
		t.Errorf("%+v, %+v, %q", sum, res, preds(t, r.dir)["a"])
	}
	told := ""
	tr, err := trajectories.Gather(trajectories.Read(filepath.Join(r.dir, "a", "attempts", "1", "journal.jsonl")))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tr.Entries {
		told += e.Content + "\n"
	}
	if !strings.Contains(told, "The sandbox ended while the command ran: out of memory.") || !strings.Contains(told, "The command was not run again.") {
		t.Errorf("the model was told %q", told)
	}
}

// dying ends with the command two.
type dying struct {
	echoing
	dies bool
}

func (m *dying) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if m.dies && c.Script == "two" {
		return env.Result{ExitCode: -1}, &env.Error{Status: env.ContainerDied, Op: "run", Err: errors.New("out of memory")}
	}
	return m.echoing.Execute(ctx, c)
}

// An attempt whose past ends its sandbox again is not gone on with for ever.
func TestAPastThatEndsItsSandbox(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: []string{"two", "submit"}, fails: map[int]error{2: agent.ErrInterrupted}}}
	r.run(t, false)
	boxes := 0
	r.boxes = func(context.Context, datasets.Instance) (env.Environment, error) {
		boxes++
		return &dying{echoing{}, boxes == 1}, nil
	}
	sum := r.run(t, true)
	if res := results(t, r.dir)["a"]; !sum.Complete() || res.Attempt != 2 {
		t.Errorf("%+v, %+v", sum, res)
	}
}

func TestAnAttemptThatDiverges(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: []string{"one", "two", "submit"}}}
	r.change = func(b *runner.Batch) { b.Budget.Calls = 2 }
	r.run(t, false)
	r.boxes, r.change, r.events = failing(), nil, nil
	sum := r.run(t, true)
	res := results(t, r.dir)["a"]
	if !sum.Complete() || res.Attempt != 2 || res.Steps != 3 || float64(sum.Spent()) != 3 {
		t.Errorf("%+v, %+v", sum, res)
	}
	var said []string
	for _, e := range r.events {
		if e.Type == runner.AttemptFinished || e.Phase == runner.Rebuilding {
			said = append(said, fmt.Sprintf("%d %v %s %d/%d", e.Attempt, e.Again, e.Text, e.Done, e.Total))
		}
	}
	want := []string{"1 false  1/2", "1 true could not be resumed: in step 1, one: ", "2 false  0/0"}
	if len(said) != len(want) {
		t.Fatalf("said %q", said)
	}
	for i, w := range want {
		if !strings.HasPrefix(said[i], w) {
			t.Errorf("said %q, want %q", said[i], w)
		}
	}
	if !strings.Contains(said[1], "exit code 1, recorded exit code 0") || !strings.Contains(said[1], "one today") {
		t.Errorf("what differs is not said: %q", said[1])
	}
	// It is over for good.
	out, ended, err := trajectories.Last(filepath.Join(r.dir, "a", "attempts", "1", "journal.jsonl"))
	if err != nil || !ended || out.Class != trajectories.Interrupted || out.ExitStatus != "Diverged" || out.Steps != 2 {
		t.Errorf("%+v, %v, %v", out, ended, err)
	}
}

// A session that never comes to its agent leaves the totals as they were.
func TestASandboxThatDoesNotStartLosesNothing(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: []string{"one", "two", "submit"}}}
	r.change = func(b *runner.Batch) { b.Budget.Calls = 2 }
	r.run(t, false)
	r.change = nil
	r.boxes = func(context.Context, datasets.Instance) (env.Environment, error) {
		return nil, &env.Error{Status: env.DaemonUnavailable, Op: "start"}
	}
	r.run(t, true)
	if res := results(t, r.dir)["a"]; res.Attempts != 1 || res.Steps != 2 || float64(res.Spent()) != 2 {
		t.Errorf("%+v", res)
	}
	r.boxes = echoes("")
	if sum := r.run(t, true); !sum.Complete() || results(t, r.dir)["a"].Attempts != 1 || float64(results(t, r.dir)["a"].Spent()) != 3 {
		t.Errorf("%+v, %+v", sum, results(t, r.dir)["a"])
	}
}

// A journal in the wrong place is nobody's to go on with.
func TestAJournalOfAnotherInstance(t *testing.T) {
	r := &resumeRun{dir: t.TempDir(), boxes: echoes(""), model: &turns{replies: []string{"one", "two", "submit"}}}
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
