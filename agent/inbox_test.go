package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// scenario is an attempt with a user.
type scenario struct {
	agent.Session
	script *scriptedModel
	cfg    agent.Config
	inbox  *agent.Inbox
	fifo   string // a FIFO that the command of longCommand writes to
}

// longCommand is a command that writes to the FIFO and then sleeps.
func (s *scenario) longCommand() string { return "echo so far; echo > " + s.fifo + "; sleep 60" }

// whenStarted calls do once longCommand runs.
func (s *scenario) whenStarted(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f, err := os.Open(s.fifo)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.ReadAll(f)
		_ = f.Close()
		do()
	}()
	t.Cleanup(func() { <-done })
}

// message returns a fixed message for Interrupt.
func message(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

// fakeUser is a User made of functions; nil functions answer nothing.
type fakeUser struct {
	turn  func() (string, error)
	raise func(agent.Limits) (agent.Limits, bool)
	next  func() string
	says  func() string
}

func (p fakeUser) Answer(context.Context) (string, error) {
	if p.says == nil {
		return "", nil
	}
	return p.says(), nil
}

func (p fakeUser) NextCommand(context.Context) (string, error) {
	if p.turn == nil {
		return "", nil
	}
	return p.turn()
}

func (p fakeUser) RaiseLimits(_ context.Context, l agent.Limits) (agent.Limits, bool, error) {
	if p.raise == nil {
		return l, false, nil
	}
	raised, ok := p.raise(l)
	return raised, ok, nil
}

func (p fakeUser) NextTask(context.Context, *agent.Submitted) (string, error) {
	if p.next == nil {
		return "", nil
	}
	return p.next(), nil
}

// sequence returns the answers in order, and then "".
func sequence(answers ...string) func() string {
	return func() string {
		if len(answers) == 0 {
			return ""
		}
		a := answers[0]
		answers = answers[1:]
		return a
	}
}

// onFirstCommand returns an approver that calls do before the first command is allowed.
func onFirstCommand(do func()) approverFunc {
	first := true
	return func(agent.ApprovalRequest) agent.Decision {
		if first {
			first = false
			do()
		}
		return agent.Decision{Action: agent.Allow, By: agent.ByUser}
	}
}

// Messages of the user give the expected history.
func TestInbox(t *testing.T) {
	tests := []struct {
		name    string
		tools   bool
		script  func(*scenario) *scriptedModel
		set     func(*testing.T, *scenario)
		status  string
		history string // history after the task, the first line of each message
	}{
		{
			name:   "steered while a command is decided on",
			script: func(*scenario) *scriptedModel { return replies(bash("echo a"), bash(submit)) },
			set: func(_ *testing.T, s *scenario) {
				s.Approver = onFirstCommand(func() { s.inbox.Steer("use tabs"); s.inbox.Steer("and hurry") })
			},
			status:  "Submitted",
			history: "assistant thought | user [0] a | user use tabs | user and hurry | assistant thought",
		},
		{
			name:    "steered before the first call",
			script:  func(*scenario) *scriptedModel { return replies(bash(submit)) },
			set:     func(_ *testing.T, s *scenario) { s.inbox.Steer("mind the tests") },
			status:  "Submitted",
			history: "user mind the tests | assistant thought",
		},
		{
			name: "two follow-ups",
			script: func(*scenario) *scriptedModel {
				return replies(bash(submit), bash("echo b"), bash(submit), bash(submit))
			},
			set: func(_ *testing.T, s *scenario) {
				s.inbox.FollowUp("now the docs")
				s.inbox.FollowUp("now the tests")
			},
			status:  "Submitted",
			history: "assistant thought | user now the docs | assistant thought | user [0] b | assistant thought | user now the tests | assistant thought",
		},
		{
			name:   "steering drops follow-ups",
			script: func(*scenario) *scriptedModel { return replies(bash("echo a"), bash(submit)) },
			set: func(_ *testing.T, s *scenario) {
				s.inbox.FollowUp("now the docs")
				s.Approver = onFirstCommand(func() { s.inbox.Steer("stop at that") })
			},
			status:  "Submitted",
			history: "assistant thought | user [0] a | user stop at that | assistant thought",
		},
		{
			name:   "steered while the last command runs",
			script: func(*scenario) *scriptedModel { return replies(bash(submit), bash(submit)) },
			set: func(_ *testing.T, s *scenario) {
				s.Approver = onFirstCommand(func() { s.inbox.Steer("not yet") })
			},
			status:  "Submitted",
			history: "assistant thought | user not yet | assistant thought",
		},
		{
			name: "followed up, with tools", tools: true,
			script: func(*scenario) *scriptedModel {
				return &scriptedModel{replies: []model.Reply{toolReply(submit, "echo never"), toolReply(submit)}}
			},
			set:    func(_ *testing.T, s *scenario) { s.inbox.FollowUp("now the docs") },
			status: "Submitted",
			history: "assistant hm | tool c2 Not run: the call before it handed in the work. | tool c1 The work was handed in, and the conversation goes on. | " +
				"user now the docs | assistant hm",
		},
		{
			name:   "interrupted during a command, with a message",
			script: func(s *scenario) *scriptedModel { return replies(bash(s.longCommand()), bash(submit)) },
			set: func(t *testing.T, s *scenario) {
				s.whenStarted(t, func() { s.inbox.Interrupt(message("try grep")) })
			},
			status: "Submitted",
			history: "assistant thought | user <The user interrupted the command, which was killed with everything it had started.>[-1] so far | " +
				"user try grep | assistant thought",
		},
		{
			name:   "interrupted during a command, without a message",
			script: func(s *scenario) *scriptedModel { return replies(bash(s.longCommand()), bash(submit)) },
			set: func(t *testing.T, s *scenario) {
				s.whenStarted(t, func() { s.inbox.Interrupt(message("")) })
			},
			status: "Submitted",
			history: "assistant thought | user <The user interrupted the command, which was killed with everything it had started.>[-1] so far | " +
				"assistant thought",
		},
		{
			name: "interrupted in the first of three calls", tools: true,
			script: func(s *scenario) *scriptedModel {
				return &scriptedModel{replies: []model.Reply{toolReply(s.longCommand(), "echo b", "echo c"), toolReply(submit)}}
			},
			set: func(t *testing.T, s *scenario) {
				s.whenStarted(t, func() { s.inbox.Interrupt(message("one at a time")) })
			},
			status: "Submitted",
			history: "assistant hm | tool c1 <The user interrupted the command, which was killed with everything it had started.>[-1] so far | " +
				"tool c2 Not run, since the call before it did not go through. | tool c3 Not run, since the call before it did not go through. | " +
				"user one at a time | assistant hm",
		},
		{
			name: "interrupted before a command runs", tools: true,
			script: func(*scenario) *scriptedModel {
				return &scriptedModel{replies: []model.Reply{toolReply("echo a", "echo b"), toolReply(submit)}}
			},
			set: func(_ *testing.T, s *scenario) {
				s.Approver = onFirstCommand(func() { s.inbox.Interrupt(message("wait")) })
			},
			status: "Submitted",
			history: "assistant hm | tool c1 Not run: the user interrupted. | tool c2 Not run, since the call before it did not go through. | " +
				"user wait | assistant hm",
		},
		{
			name:   "interrupted, then ended by the user",
			script: func(s *scenario) *scriptedModel { return replies(bash(s.longCommand())) },
			set: func(t *testing.T, s *scenario) {
				s.whenStarted(t, func() {
					s.inbox.Interrupt(func(context.Context) (string, error) { return "", agent.ErrInterrupted })
				})
			},
			status:  "Interrupted",
			history: "assistant thought | user <The user interrupted the command, which was killed with everything it had started.>[-1] so far",
		},
		{
			name:    "aborted during a command",
			script:  func(s *scenario) *scriptedModel { return replies(bash(s.longCommand())) },
			set:     func(t *testing.T, s *scenario) { s.whenStarted(t, s.inbox.Abort) },
			status:  "Interrupted",
			history: "assistant thought",
		},
		{
			name:   "aborted before the start",
			script: func(*scenario) *scriptedModel { return replies(bash(submit)) },
			set:    func(_ *testing.T, s *scenario) { s.inbox.Abort() },
			status: "Interrupted",
		},
		{
			name:   "commands of the user",
			script: func(*scenario) *scriptedModel { return replies(bash("cat a.txt"), bash(submit)) },
			set: func(_ *testing.T, s *scenario) {
				own := sequence("echo ```x```; echo two >> a.txt; exit 3", "", "echo late")
				s.User = fakeUser{turn: func() (string, error) { return own(), nil }}
			},
			status:  "Submitted",
			history: "user The user ran a command: | assistant thought | user [0] one | user The user ran a command: | assistant thought",
		},
		{
			name:   "the user submits",
			script: func(*scenario) *scriptedModel { return replies() },
			set: func(_ *testing.T, s *scenario) {
				s.User = fakeUser{turn: func() (string, error) { return submit, nil }}
			},
			status: "Submitted",
		},
		{
			name:   "the user quits when asked for a command",
			script: func(*scenario) *scriptedModel { return replies() },
			set: func(_ *testing.T, s *scenario) {
				s.User = fakeUser{turn: func() (string, error) { return "", fmt.Errorf("%w: end of input", agent.ErrInterrupted) }}
			},
			status: "Interrupted",
		},
		{
			name:    "new tasks, then none",
			script:  func(*scenario) *scriptedModel { return replies(bash(submit), bash(submit), bash(submit)) },
			set:     func(_ *testing.T, s *scenario) { s.User = fakeUser{next: sequence("and a", "and b")} },
			status:  "Submitted",
			history: "assistant thought | user and a | assistant thought | user and b | assistant thought",
		},
		{
			name:   "limits raised twice, then not",
			script: func(*scenario) *scriptedModel { return replies(bash("true"), bash("true"), bash("true"), bash("true")) },
			set: func(_ *testing.T, s *scenario) {
				s.cfg.StepLimit = 1
				s.User = fakeUser{raise: func(l agent.Limits) (agent.Limits, bool) {
					return agent.Limits{Steps: l.Steps + 1}, l.Steps < 3
				}}
			},
			status:  "LimitsExceeded",
			history: "assistant thought | user [0]  | assistant thought | user [0]  | assistant thought | user [0] ",
		},
		{
			name:   "a limit raised by too little is reached again",
			script: func(*scenario) *scriptedModel { return replies(bash("true"), bash(submit)) },
			set: func(_ *testing.T, s *scenario) {
				s.cfg.CostLimit = 0.1
				s.User = fakeUser{raise: func(l agent.Limits) (agent.Limits, bool) {
					return agent.Limits{Cost: 2 * l.Cost}, true
				}}
			},
			status:  "Submitted",
			history: "assistant thought | user [0]  | assistant thought",
		},
		{
			name:   "the time limit is not raised",
			script: func(*scenario) *scriptedModel { return replies(bash("sleep 60")) },
			set: func(t *testing.T, s *scenario) {
				s.cfg.WallTimeLimit = 2
				s.User = fakeUser{raise: func(l agent.Limits) (agent.Limits, bool) {
					t.Error("the user was asked")
					return l, true
				}}
			},
			status:  "TimeExceeded",
			history: "assistant thought",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &scenario{cfg: config(), inbox: agent.NewInbox(), fifo: filepath.Join(t.TempDir(), "began")}
			require.NoError(t, syscall.Mkfifo(s.fifo, 0o600))
			if tt.tools {
				s.cfg.Protocol = protocol.Tools
			}
			s.script = tt.script(s)
			repo := agenttest.NewRepository(t)
			s.Session = agent.Session{Model: s.script, Environment: untimed{repo.Sandbox}, Repository: repo, Inbox: s.inbox, Task: agent.Task{Text: "task"}}
			tt.set(t, s)
			out, journal := s.run(t)
			assert.Equal(t, tt.status, out.ExitStatus, "ended: %s", out.Error)
			got, err := trajectories.Fold(trajectories.Read(journal))
			require.NoError(t, err)
			var history []trajectories.Message
			for _, e := range got.Entries {
				history = append(history, e.Message)
			}
			assert.Equal(t, tt.history, summarize(history[min(2, len(history)):]), "history")
			checkJournal(t, journal)
		})
	}
}

// run runs one session with a journal.
func (s *scenario) run(t *testing.T) (trajectories.Outcome, string) {
	t.Helper()
	a, err := agent.New(s.cfg)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	journal, err := trajectories.Create(path, trajectories.Header{InstanceID: "task", Attempt: 1})
	require.NoError(t, err)
	s.Recorder = journal
	out := a.Run(t.Context(), s.Session)
	require.NoError(t, journal.Close())
	return out, path
}

// checkJournal checks a journal against its format, and that it can be resumed.
func checkJournal(t *testing.T, journal string) {
	t.Helper()
	if _, err := trajectories.Fold(trajectories.CheckOrder(trajectories.Read(journal))); err != nil {
		t.Error(err)
	}
	state, err := agent.ReadResumeState(trajectories.Read(journal))
	if err != nil || state == nil {
		t.Errorf("recall: %v", err)
	}
}

// An interruption during a model call ends the call, and the next call has its
// message.
func TestInterruptModelCall(t *testing.T) {
	s := &scenario{cfg: config(), inbox: agent.NewInbox()}
	s.script = replies()
	s.script.errs = map[int]error{}
	asked := make(chan struct{}, 2)
	repo := agenttest.NewRepository(t)
	s.Session = agent.Session{Model: announcingModel{s.script, asked}, Environment: repo.Sandbox, Repository: repo, Inbox: s.inbox, Task: agent.Task{Text: "task"}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-asked
		s.inbox.Interrupt(message("do you hear me"))
		<-asked
		s.inbox.Abort()
	}()
	out, journal := s.run(t)
	<-done
	if out.ExitStatus != "Interrupted" || out.Steps != 2 {
		t.Errorf("%s after %d steps: %s", out.ExitStatus, out.Steps, out.Error)
	}
	if last := s.script.prompts[1][2:]; len(last) != 1 || last[0].Content != "do you hear me" {
		t.Errorf("the second call has %+v", last)
	}
	checkJournal(t, journal)
}

// announcingModel reports each call.
type announcingModel struct {
	*scriptedModel
	asked chan<- struct{}
}

func (m announcingModel) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	m.asked <- struct{}{}
	return m.scriptedModel.Query(ctx, messages)
}

// A submission is not repeated when the attempt is resumed with a new task.
func TestResumeAfterSubmission(t *testing.T) {
	for _, tools := range []bool{false, true} {
		t.Run(fmt.Sprintf("tools=%t", tools), func(t *testing.T) {
			s := &scenario{cfg: config(), inbox: agent.NewInbox(), script: replies(bash("echo x >> log; " + submit))}
			if tools {
				s.cfg.Protocol = protocol.Tools
				s.script = &scriptedModel{replies: []model.Reply{toolReply("echo x >> log; " + submit)}}
			}
			repo := agenttest.NewRepository(t)
			s.Session = agent.Session{Model: s.script, Environment: repo.Sandbox, Repository: repo, Inbox: s.inbox, Task: agent.Task{Text: "task"}}
			_, path := s.run(t)

			state, err := agent.ReadResumeState(trajectories.Read(path))
			require.NoError(t, err)
			journal, err := trajectories.Reopen(path, trajectories.Resume{Record: state.LastRecord})
			require.NoError(t, err)
			resumed := replies(bash("cat log"), bash(submit))
			if tools {
				resumed = &scriptedModel{replies: []model.Reply{toolReply("cat log"), toolReply(submit)}}
			}
			inbox := agent.NewInbox()
			inbox.FollowUp("what is in the log?")
			a, err := agent.New(s.cfg)
			require.NoError(t, err)
			out := a.Run(t.Context(), agent.Session{Model: resumed, Environment: repo.Sandbox, Repository: repo, Recorder: journal, Inbox: inbox, Resume: state})
			require.NoError(t, errors.Join(journal.Close()))
			if out.ExitStatus != "Submitted" || out.Steps != 3 {
				t.Errorf("%s after %d steps: %s", out.ExitStatus, out.Steps, out.Error)
			}
			seen := resumed.prompts[1]
			assert.Equal(t, "[0] x\n", seen[len(seen)-1].Content, "the log")
			if !slices.ContainsFunc(seen, func(m model.Message) bool { return m.Content == "what is in the log?" }) {
				t.Errorf("the model was not sent the follow-up: %+v", seen)
			}
			checkJournal(t, path)
		})
	}
}

// The time that an approver takes does not count.
func TestDecisionsPauseTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.WallTimeLimit, cfg.StepLimit = 60, 2
		a, err := agent.New(cfg)
		require.NoError(t, err)
		out := a.Run(t.Context(), agent.Session{
			Model: replies(bash("work"), bash("work")), Environment: timedSandbox{10 * time.Second}, Recorder: &testRecorder{}, Task: agent.Task{Text: "task"},
			Approver: approverFunc(func(agent.ApprovalRequest) agent.Decision {
				time.Sleep(time.Hour)
				return agent.Decision{Action: agent.Allow}
			}),
			User: fakeUser{turn: func() (string, error) {
				time.Sleep(time.Hour)
				return "", nil
			}},
		})
		assert.Equal(t, "LimitsExceeded", out.ExitStatus, "ended after %d steps", out.Steps)
	})
}
