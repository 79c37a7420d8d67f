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
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// turnModel answers according to the number of replies in the conversation.
type turnModel struct {
	replies []model.Reply
	calls   int
}

func (m *turnModel) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	m.calls++
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

// newRecorder returns a recorder with the header of a journal.
func newRecorder() *testRecorder {
	return &testRecorder{records: []trajectories.Record{{ID: 1, Type: trajectories.TypeHeader, Data: json.RawMessage("{}")}}}
}

// resume resumes an attempt from its records, in a new sandbox.
func resume(ctx context.Context, t *testing.T, cfg agent.Config, m model.Model, rec *testRecorder) (trajectories.Outcome, *agent.ResumeState) {
	t.Helper()
	state, err := agent.ReadResumeState(rec.all())
	require.NoError(t, err)
	a, err := agent.New(cfg)
	require.NoError(t, err)
	state.Rebuild = func(ctx context.Context, sandbox env.Environment, _ *worktree.Tree) error {
		for _, x := range state.Executions {
			if _, err := sandbox.Execute(ctx, a.Command(x.Command)); err != nil {
				return err
			}
		}
		return nil
	}
	earlier := *state
	attempt := *state.Attempt
	earlier.Attempt = &attempt // Run continues state.Attempt
	n := len(rec.records)
	_, err = rec.Append(trajectories.TypeResume, trajectories.Resume{Record: state.LastRecord})
	require.NoError(t, err)
	rec.records[n].Parent = state.LastRecord
	repo := agenttest.NewRepository(t)
	out := a.Run(ctx, agent.Session{Model: m, Environment: repo.Sandbox, Repository: repo, Recorder: rec, Task: agent.Task{Text: "task"}, Resume: state})
	checkFold(t, state.Attempt, rec)
	return out, &earlier
}

// checkFold checks that an attempt that the agent has kept while it worked is the one that
// a reader of the records gets.
func checkFold(t *testing.T, live *trajectories.Attempt, rec *testRecorder) {
	t.Helper()
	read, err := trajectories.ForTraining.Fold(rec.all())
	require.NoError(t, err)
	for name, diff := range map[string]string{
		"prompt":   cmp.Diff(read.NextPrompt(), live.NextPrompt()),
		"entries":  cmp.Diff(read.Entries, live.Entries, cmpopts.IgnoreFields(trajectories.Entry{}, "Time", "Executions", "Call"), cmpopts.EquateEmpty()),
		"calls":    cmp.Diff(len(read.FailedCalls), len(live.FailedCalls)),
		"spending": cmp.Diff(read.Totals.Own, live.Totals.Own),
		"children": cmp.Diff(read.Totals.Children, live.Totals.Children),
		"counts":   cmp.Diff([]int{read.Replies(), read.FormatErrors(0), read.Results()}, []int{live.Replies(), live.FormatErrors(0), live.Results()}),
	} {
		if diff != "" {
			t.Errorf("%s (-read +live):\n%s", name, diff)
		}
	}
}

// conversation returns the messages of the records.
func conversation(t *testing.T, rec *testRecorder) []model.Message {
	t.Helper()
	tr, err := trajectories.Fold(rec.all())
	require.NoError(t, err)
	var list []model.Message
	for _, e := range tr.Entries {
		list = append(list, e.Message.Message)
	}
	return list
}

// resumableAttempts are conversations with everything that can be interrupted.
func resumableAttempts() map[string]struct {
	cfg     agent.Config
	replies []model.Reply
} {
	text, tools := config(), toolsConfig()
	for _, c := range []*agent.Config{&text, &tools} {
		c.SystemTemplate = "be brief"
		c.Submission, c.StartupCommand, c.MaxFormatErrors = agent.SubmissionPatch, "echo ready > .git/ready", 2
	}
	native := []model.Reply{
		toolReply("echo two >> a.txt", "echo three >> a.txt", "cat a.txt"),
		toolReply("!nonsense", "echo never >> a.txt"),
		toolReply("wc -l < a.txt"),
		toolReply(submit+" && echo no patch", "echo never >> a.txt"),
		toolReply("echo four >> a.txt", submit+" && git diff"),
	}
	for i, r := range native { // providers never repeat an id
		for j := range r.Message.ToolCalls {
			r.Message.ToolCalls[j].ID = fmt.Sprintf("c%d_%d", i, j)
		}
	}
	return map[string]struct {
		cfg     agent.Config
		replies []model.Reply
	}{
		"text": {text, replies(
			bash("echo two >> a.txt"), "no command", bash("cat a.txt .git/ready"),
			bash(submit+" && echo no patch"), bash("echo three >> a.txt"), bash(submit+" && git diff")).replies},
		"tools": {tools, native},
	}
}

// From any record on, an attempt resumes to the same end, and no command is run
// and no message sent twice.
func TestResumeAfterAnyRecord(t *testing.T) {
	for name, tt := range resumableAttempts() {
		t.Run(name, func(t *testing.T) {
			whole := newRecorder()
			first := (&firstSession{cfg: tt.cfg, m: &turnModel{replies: tt.replies}, rec: whole}).run(t)
			if first.Class != trajectories.Submitted || !strings.Contains(string(first.Submission), "+three") {
				t.Fatalf("%+v", first)
			}
			want := conversation(t, whole)
			for n := 1; n < len(whole.records); n++ {
				rec := &testRecorder{records: append([]trajectories.Record(nil), whole.records[:n]...)}
				m := &turnModel{replies: tt.replies}
				out, state := resume(t.Context(), t, tt.cfg, m, rec)
				where := fmt.Sprintf("after %d records (%s)", n, whole.records[n-1].Type)
				if out.Class != first.Class || string(out.Submission) != string(first.Submission) || out.Source != first.Source {
					t.Errorf("%s: %s %s, submission %q", where, out.Class, out.Error, out.Submission)
				}
				assert.Equal(t, want, conversation(t, rec), "%s, another conversation", where)
				// Only a call without a recorded reply is paid twice.
				unrecorded := 0
				if whole.records[n-1].Type == trajectories.TypeCall {
					unrecorded = 1
				}
				if out.Steps != len(tt.replies)+unrecorded || m.calls != out.Steps-state.Attempt.Totals.Own.Steps || float64(out.Cost) != 0.25*float64(out.Steps) {
					t.Errorf("%s: %d steps, $%v, the model was asked %d times", where, out.Steps, out.Cost, m.calls)
				}
			}
		})
	}
}

// firstSession is the first session of an attempt.
type firstSession struct {
	cfg agent.Config
	m   model.Model
	rec *testRecorder
	ctx context.Context //nolint:containedctx // of a test
}

func (r *firstSession) run(t *testing.T) trajectories.Outcome {
	t.Helper()
	a, err := agent.New(r.cfg)
	require.NoError(t, err)
	ctx := r.ctx
	if ctx == nil {
		ctx = t.Context()
	}
	repo := agenttest.NewRepository(t)
	return a.Run(ctx, agent.Session{Model: r.m, Environment: repo.Sandbox, Repository: repo, Recorder: r.rec, Task: agent.Task{Text: "task"}})
}

// An interrupted attempt has answers to skipped calls, a diff and an outcome at
// its end. Resuming discards them.
func TestResumeAfterInterruption(t *testing.T) {
	for name, tt := range resumableAttempts() {
		t.Run(name, func(t *testing.T) {
			whole := newRecorder()
			first := (&firstSession{cfg: tt.cfg, m: &turnModel{replies: tt.replies}, rec: whole}).run(t)
			want := conversation(t, whole)
			for n := 3; n < len(whole.records)-2; n++ {
				ctx, stop := context.WithCancelCause(t.Context())
				rec := newRecorder()
				rec.fail = func(trajectories.Type) error {
					if len(rec.records) >= n {
						stop(agent.ErrInterrupted)
					}
					return nil
				}
				out := (&firstSession{cfg: tt.cfg, m: &turnModel{replies: tt.replies}, rec: rec, ctx: ctx}).run(t)
				stop(nil)
				if out.Class != trajectories.Interrupted {
					continue // it ended before the interruption
				}
				rec.fail = nil
				// Twice, because a resumed attempt may be interrupted again.
				ctx, stop = context.WithCancelCause(t.Context())
				stop(agent.ErrInterrupted)
				if out, _ := resume(ctx, t, tt.cfg, &turnModel{}, rec); out.Class != trajectories.Interrupted {
					t.Errorf("stopped at record %d, then at once: %s %s", n, out.Class, out.Error)
				}
				out, _ = resume(t.Context(), t, tt.cfg, &turnModel{replies: tt.replies}, rec)
				if string(out.Submission) != string(first.Submission) || out.Class != trajectories.Submitted {
					t.Errorf("stopped at record %d: %s %s, submission %q", n, out.Class, out.Error, out.Submission)
				}
				assert.Equal(t, want, conversation(t, rec), "stopped at record %d, another conversation", n)
			}
		})
	}
}

// Limits include earlier sessions.
func TestLimitsAfterResume(t *testing.T) {
	edit := bash("echo two >> a.txt")
	tests := map[string]struct {
		change    func(*agent.Config)
		lastReply string // last reply of the earlier session
		status    string
	}{
		"steps":                  {func(c *agent.Config) { c.StepLimit = 3 }, edit, "LimitsExceeded"},
		"cost":                   {func(c *agent.Config) { c.CostLimit = 0.75 }, edit, "LimitsExceeded"},
		"time":                   {func(c *agent.Config) { c.WallTimeLimit = 3600 }, edit, "TimeExceeded"},
		"format errors in a row": {func(c *agent.Config) { c.MaxFormatErrors = 2 }, "none", "RepeatedFormatError"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rec := newRecorder()
			(&firstSession{cfg: config(), rec: rec, m: &scriptedModel{replies: replies(edit, tt.lastReply).replies, errs: map[int]error{2: errors.New("killed")}}}).run(t)
			cut := len(rec.records) - 3 // without the failed call, the diff and the outcome
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
			out, _ := resume(t.Context(), t, cfg, replies("none", edit, edit), rec)
			if out.ExitStatus != tt.status || !strings.Contains(string(out.Submission), "+two") {
				t.Errorf("%s %s after %d steps, submission %q", out.ExitStatus, out.Error, out.Steps, out.Submission)
			}
		})
	}
}

func TestRebuildFails(t *testing.T) {
	rec := newRecorder()
	(&firstSession{cfg: config(), m: replies(bash("echo two >> a.txt"), bash(submit)), rec: rec}).run(t)
	rec.records = rec.records[:6] // prompts, a call, its reply, its result
	state, err := agent.ReadResumeState(rec.all())
	require.NoError(t, err)
	state.Rebuild = func(context.Context, env.Environment, *worktree.Tree) error {
		return fmt.Errorf("step 1: %w", agent.ErrDiverged)
	}
	a, err := agent.New(config())
	require.NoError(t, err)
	repo := agenttest.NewRepository(t)
	out := a.Run(t.Context(), agent.Session{Model: replies(), Environment: repo.Sandbox, Repository: repo, Recorder: rec, Resume: state})
	if out.Class != trajectories.Interrupted || out.ExitStatus != "Diverged" || out.Steps != 1 || out.PartialPatch != nil {
		t.Errorf("%+v", out)
	}
	if strings.Contains(rec.types(), "diff") {
		t.Error("a diff was taken of files that are not the attempt's")
	}
}
