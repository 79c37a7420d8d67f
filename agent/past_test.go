package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// byTurns answers by how far a conversation has come, as a model does.
type byTurns struct {
	replies []model.Reply
	asked   int
}

func (m *byTurns) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	m.asked++
	turns := 0
	for _, msg := range messages {
		if msg.Role == model.Assistant {
			turns++
		}
	}
	if turns >= len(m.replies) {
		<-ctx.Done()
		return model.Reply{}, ctx.Err()
	}
	return m.replies[turns], nil
}

// begun is a recorder with the header that a journal begins with.
func begun() *memory {
	return &memory{records: []trajectories.Record{{ID: 1, Type: trajectories.TypeHeader, Data: json.RawMessage("{}")}}}
}

// goOn runs an attempt on from its records, in a sandbox of its own.
func goOn(ctx context.Context, t *testing.T, cfg agent.Config, m model.Model, rec *memory) (trajectories.Outcome, *agent.Past) {
	t.Helper()
	past, err := agent.Recall(rec.all())
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	past.Rebuild = func(ctx context.Context, box env.Environment, _ *worktree.Tree) error {
		for _, x := range past.Executions {
			if _, err := box.Execute(ctx, a.Command(x.Command)); err != nil {
				return err
			}
		}
		return nil
	}
	n := len(rec.records)
	if _, err := rec.Append(trajectories.TypeResume, trajectories.Resume{Record: past.Record}); err != nil {
		t.Fatal(err)
	}
	rec.records[n].Parent = past.Record
	return a.Run(ctx, agent.Session{Model: m, Environment: repository(t), Recorder: rec, Task: agent.Task{Text: "task"}, Past: past}), past
}

// stride leaves out most of what is much alike, where there is little time.
func stride(n int) int {
	if envtest.Long() {
		return 1
	}
	return n
}

// said is a conversation without its record numbers.
func said(t *testing.T, rec *memory) []model.Message {
	t.Helper()
	tr, err := trajectories.Gather(rec.all())
	if err != nil {
		t.Fatal(err)
	}
	var list []model.Message
	for _, e := range tr.Entries {
		list = append(list, e.Message.Message)
	}
	return list
}

// attempts are conversations with all that can be interrupted in one.
func attempts() map[string]struct {
	cfg     agent.Config
	replies []model.Reply
} {
	text, tools := config(), toolsConfig()
	for _, c := range []*agent.Config{&text, &tools} {
		c.SystemTemplate = "be brief"
		c.Submission, c.StartupCommand, c.MaxFormatErrors = agent.SubmissionPatch, "echo ready > .git/ready", 2
	}
	native := []model.Reply{
		calls("echo two >> a.txt", "echo three >> a.txt", "cat a.txt"),
		calls("!nonsense", "echo never >> a.txt"),
		calls("wc -l < a.txt"),
		calls(submit+" && echo no patch", "echo never >> a.txt"),
		calls("echo four >> a.txt", submit+" && git diff"),
	}
	for i, r := range native { // ids of providers are never there twice
		for j := range r.Message.Calls {
			r.Message.Calls[j].ID = fmt.Sprintf("c%d_%d", i, j)
		}
	}
	return map[string]struct {
		cfg     agent.Config
		replies []model.Reply
	}{
		"text": {text, says(
			bash("echo two >> a.txt"), "no command", bash("cat a.txt .git/ready"),
			bash(submit+" && echo no patch"), bash("echo three >> a.txt"), bash(submit+" && git diff")).replies},
		"tools": {tools, native},
	}
}

// A mini that is killed leaves some of the records. From any of them on, the
// attempt goes on to the end it would have had, and nothing is run, or told,
// twice.
func TestGoingOnAfterAnyRecord(t *testing.T) {
	for name, tt := range attempts() {
		t.Run(name, func(t *testing.T) {
			whole := begun()
			first := (&agentRun{cfg: tt.cfg, m: &byTurns{replies: tt.replies}, rec: whole}).run(t)
			if first.Class != trajectories.Submitted || !strings.Contains(string(first.Submission), "+three") {
				t.Fatalf("%+v", first)
			}
			want := said(t, whole)
			for n := 1; n < len(whole.records); n += stride(4) {
				rec := &memory{records: append([]trajectories.Record(nil), whole.records[:n]...)}
				m := &byTurns{replies: tt.replies}
				out, past := goOn(t.Context(), t, tt.cfg, m, rec)
				at := fmt.Sprintf("after %d records (%s)", n, whole.records[n-1].Type)
				if out.Class != first.Class || string(out.Submission) != string(first.Submission) || out.Source != first.Source {
					t.Errorf("%s: %s %s, submission %q", at, out.Class, out.Error, out.Submission)
				}
				if diff := cmp.Diff(want, said(t, rec)); diff != "" {
					t.Errorf("%s, another conversation:\n%s", at, diff)
				}
				// Paid twice is only a call whose reply was lost.
				lost := 0
				if whole.records[n-1].Type == trajectories.TypeCall {
					lost = 1
				}
				if out.Steps != len(tt.replies)+lost || m.asked != out.Steps-past.Steps || float64(out.Cost) != 0.25*float64(out.Steps) {
					t.Errorf("%s: %d steps, $%v, the model was asked %d times", at, out.Steps, out.Cost, m.asked)
				}
			}
		})
	}
}

// agentRun is a first session of an attempt.
type agentRun struct {
	cfg agent.Config
	m   model.Model
	rec *memory
	ctx context.Context //nolint:containedctx // of a test
}

func (r *agentRun) run(t *testing.T) trajectories.Outcome {
	t.Helper()
	a, err := agent.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx := r.ctx
	if ctx == nil {
		ctx = t.Context()
	}
	return a.Run(ctx, agent.Session{Model: r.m, Environment: repository(t), Recorder: r.rec, Task: agent.Task{Text: "task"}})
}

// One that is stopped leaves an end besides: answers to what was not run, a
// diff, an outcome. That end is no part of what goes on.
func TestGoingOnAfterAnInterruption(t *testing.T) {
	for name, tt := range attempts() {
		t.Run(name, func(t *testing.T) {
			whole := begun()
			first := (&agentRun{cfg: tt.cfg, m: &byTurns{replies: tt.replies}, rec: whole}).run(t)
			want := said(t, whole)
			for n := 3; n < len(whole.records)-2; n += stride(9) {
				ctx, stop := context.WithCancelCause(t.Context())
				rec := begun()
				rec.fail = func(trajectories.Type) error {
					if len(rec.records) >= n {
						stop(agent.ErrInterrupted)
					}
					return nil
				}
				out := (&agentRun{cfg: tt.cfg, m: &byTurns{replies: tt.replies}, rec: rec, ctx: ctx}).run(t)
				stop(nil)
				if out.Class != trajectories.Interrupted {
					continue // it came to its end all the same
				}
				rec.fail = nil
				// Twice, since what goes on may be stopped again.
				ctx, stop = context.WithCancelCause(t.Context())
				stop(agent.ErrInterrupted)
				if out, _ := goOn(ctx, t, tt.cfg, &byTurns{}, rec); out.Class != trajectories.Interrupted {
					t.Errorf("stopped at record %d, then at once: %s %s", n, out.Class, out.Error)
				}
				out, _ = goOn(t.Context(), t, tt.cfg, &byTurns{replies: tt.replies}, rec)
				if string(out.Submission) != string(first.Submission) || out.Class != trajectories.Submitted {
					t.Errorf("stopped at record %d: %s %s, submission %q", n, out.Class, out.Error, out.Submission)
				}
				if diff := cmp.Diff(want, said(t, rec)); diff != "" {
					t.Errorf("stopped at record %d, another conversation:\n%s", n, diff)
				}
			}
		})
	}
}

// Limits count what was before.
func TestLimitsOfAnAttemptThatGoesOn(t *testing.T) {
	edit := bash("echo two >> a.txt")
	tests := map[string]struct {
		change func(*agent.Config)
		past   string // the last replies of it
		status string
	}{
		"steps":                  {func(c *agent.Config) { c.StepLimit = 3 }, edit, "LimitsExceeded"},
		"cost":                   {func(c *agent.Config) { c.CostLimit = 0.75 }, edit, "LimitsExceeded"},
		"time":                   {func(c *agent.Config) { c.WallTimeLimit = 3600 }, edit, "TimeExceeded"},
		"format errors in a row": {func(c *agent.Config) { c.MaxFormatErrors = 2 }, "none", "RepeatedFormatError"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rec := begun()
			(&agentRun{cfg: config(), rec: rec, m: &script{replies: says(edit, tt.past).replies, errs: map[int]error{2: errors.New("killed")}}}).run(t)
			cut := len(rec.records) - 3 // the failed call, the diff and the outcome
			rec.records = rec.records[:cut]
			if name == "time" {
				for i := range rec.records[cut-2:] {
					rec.records[cut-2+i].Time = time.Now().Add(time.Hour)
				}
				for i := range rec.records[:cut-2] {
					rec.records[i].Time = time.Now()
				}
			}
			cfg := config()
			tt.change(&cfg)
			out, _ := goOn(t.Context(), t, cfg, says("none", edit, edit), rec)
			if out.ExitStatus != tt.status || !strings.Contains(string(out.Submission), "+two") {
				t.Errorf("%s %s after %d steps, submission %q", out.ExitStatus, out.Error, out.Steps, out.Submission)
			}
		})
	}
}

func TestASandboxThatCannotBeMadeAnew(t *testing.T) {
	rec := begun()
	(&agentRun{cfg: config(), m: says(bash("echo two >> a.txt"), bash(submit)), rec: rec}).run(t)
	rec.records = rec.records[:6] // the prompts, a call, its reply, what it did
	past, err := agent.Recall(rec.all())
	if err != nil {
		t.Fatal(err)
	}
	past.Rebuild = func(context.Context, env.Environment, *worktree.Tree) error {
		return fmt.Errorf("step 1: %w", agent.ErrDiverged)
	}
	a, err := agent.New(config())
	if err != nil {
		t.Fatal(err)
	}
	out := a.Run(t.Context(), agent.Session{Model: says(), Environment: repository(t), Recorder: rec, Past: past})
	if out.Class != trajectories.Interrupted || out.ExitStatus != "Diverged" || out.Steps != 1 || out.PartialPatch != nil {
		t.Errorf("%+v", out)
	}
	if strings.Contains(rec.types(), "diff") {
		t.Error("a diff was taken of files that are not the attempt's")
	}
}
