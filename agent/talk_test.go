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

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/check"
)

// scene is one attempt that somebody watches.
type scene struct {
	agent.Session
	script *script
	cfg    agent.Config
	talk   *agent.Talk
	began  string // a FIFO that a command of begins writes to
}

// begins is a command that says that it runs, and then does so for long.
func (s *scene) begins() string { return "echo so far; echo > " + s.began + "; sleep 60" }

// whenBegun does something once that command runs.
func (s *scene) whenBegun(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f, err := os.Open(s.began)
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

// message is what a person who interrupted says.
func message(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

// person answers from functions; those that are nil say nothing.
type person struct {
	turn  func() (string, error)
	raise func(agent.Limits) (agent.Limits, bool)
	next  func() string
}

func (p person) Turn(context.Context) (string, error) {
	if p.turn == nil {
		return "", nil
	}
	return p.turn()
}

func (p person) Raise(_ context.Context, l agent.Limits) (agent.Limits, bool, error) {
	if p.raise == nil {
		return l, false, nil
	}
	raised, ok := p.raise(l)
	return raised, ok, nil
}

func (p person) Next(context.Context, *agent.Submitted) (string, error) {
	if p.next == nil {
		return "", nil
	}
	return p.next(), nil
}

// inTurn gives one answer after the other, and then "".
func inTurn(answers ...string) func() string {
	return func() string {
		if len(answers) == 0 {
			return ""
		}
		a := answers[0]
		answers = answers[1:]
		return a
	}
}

// firstOnly does something before the first proposal is allowed.
func firstOnly(do func()) decides {
	first := true
	return func(agent.Proposal) agent.Decision {
		if first {
			first = false
			do()
		}
		return agent.Decision{Action: agent.Allow, By: agent.ByUser}
	}
}

// What people say to an attempt while it works, as the model is told of it.
func TestTalk(t *testing.T) {
	tests := []struct {
		name   string
		tools  bool
		script func(*scene) *script
		set    func(*testing.T, *scene)
		status string
		told   string // after the task, the first line of each
	}{
		{
			name:   "steered while a command is decided on",
			script: func(*scene) *script { return says(bash("echo a"), bash(submit)) },
			set: func(_ *testing.T, s *scene) {
				s.Supervisor = firstOnly(func() { s.talk.Steer("use tabs"); s.talk.Steer("and hurry") })
			},
			status: "Submitted",
			told:   "assistant thought | user [0] a | user use tabs | user and hurry | assistant thought",
		},
		{
			name:   "steered before the first call",
			script: func(*scene) *script { return says(bash(submit)) },
			set:    func(_ *testing.T, s *scene) { s.talk.Steer("mind the tests") },
			status: "Submitted",
			told:   "user mind the tests | assistant thought",
		},
		{
			name:   "followed up twice",
			script: func(*scene) *script { return says(bash(submit), bash("echo b"), bash(submit), bash(submit)) },
			set: func(_ *testing.T, s *scene) {
				s.talk.FollowUp("now the docs")
				s.talk.FollowUp("now the tests")
			},
			status: "Submitted",
			told:   "assistant thought | user now the docs | assistant thought | user [0] b | assistant thought | user now the tests | assistant thought",
		},
		{
			name:   "steering clears what was to follow",
			script: func(*scene) *script { return says(bash("echo a"), bash(submit)) },
			set: func(_ *testing.T, s *scene) {
				s.talk.FollowUp("now the docs")
				s.Supervisor = firstOnly(func() { s.talk.Steer("stop at that") })
			},
			status: "Submitted",
			told:   "assistant thought | user [0] a | user stop at that | assistant thought",
		},
		{
			name:   "steered while the last command runs",
			script: func(*scene) *script { return says(bash(submit), bash(submit)) },
			set: func(_ *testing.T, s *scene) {
				s.Supervisor = firstOnly(func() { s.talk.Steer("not yet") })
			},
			status: "Submitted",
			told:   "assistant thought | user not yet | assistant thought",
		},
		{
			name: "followed up, with tools", tools: true,
			script: func(*scene) *script {
				return &script{replies: []model.Reply{calls(submit, "echo never"), calls(submit)}}
			},
			set:    func(_ *testing.T, s *scene) { s.talk.FollowUp("now the docs") },
			status: "Submitted",
			told: "assistant hm | tool c2 Not run: the call before it handed in the work. | tool c1 The work was handed in, and the conversation goes on. | " +
				"user now the docs | assistant hm",
		},
		{
			name:   "interrupted in mid-command, with a message",
			script: func(s *scene) *script { return says(bash(s.begins()), bash(submit)) },
			set: func(t *testing.T, s *scene) {
				s.whenBegun(t, func() { s.talk.Interrupt(message("try grep")) })
			},
			status: "Submitted",
			told: "assistant thought | user <The user interrupted the command, which was killed with everything it had started.>[-1] so far | " +
				"user try grep | assistant thought",
		},
		{
			name:   "interrupted in mid-command, without one",
			script: func(s *scene) *script { return says(bash(s.begins()), bash(submit)) },
			set: func(t *testing.T, s *scene) {
				s.whenBegun(t, func() { s.talk.Interrupt(message("")) })
			},
			status: "Submitted",
			told: "assistant thought | user <The user interrupted the command, which was killed with everything it had started.>[-1] so far | " +
				"assistant thought",
		},
		{
			name: "interrupted in the first of three calls", tools: true,
			script: func(s *scene) *script {
				return &script{replies: []model.Reply{calls(s.begins(), "echo b", "echo c"), calls(submit)}}
			},
			set: func(t *testing.T, s *scene) {
				s.whenBegun(t, func() { s.talk.Interrupt(message("one at a time")) })
			},
			status: "Submitted",
			told: "assistant hm | tool c1 <The user interrupted the command, which was killed with everything it had started.>[-1] so far | " +
				"tool c2 Not run, since the call before it did not go through. | tool c3 Not run, since the call before it did not go through. | " +
				"user one at a time | assistant hm",
		},
		{
			name: "interrupted before a command runs", tools: true,
			script: func(*scene) *script {
				return &script{replies: []model.Reply{calls("echo a", "echo b"), calls(submit)}}
			},
			set: func(_ *testing.T, s *scene) {
				s.Supervisor = firstOnly(func() { s.talk.Interrupt(message("wait")) })
			},
			status: "Submitted",
			told: "assistant hm | tool c1 Not run: the user interrupted. | tool c2 Not run, since the call before it did not go through. | " +
				"user wait | assistant hm",
		},
		{
			name:   "interrupted by who then gives up",
			script: func(s *scene) *script { return says(bash(s.begins())) },
			set: func(t *testing.T, s *scene) {
				s.whenBegun(t, func() {
					s.talk.Interrupt(func(context.Context) (string, error) { return "", agent.ErrInterrupted })
				})
			},
			status: "Interrupted",
			told:   "assistant thought | user <The user interrupted the command, which was killed with everything it had started.>[-1] so far",
		},
		{
			name:   "aborted in mid-command",
			script: func(s *scene) *script { return says(bash(s.begins())) },
			set:    func(t *testing.T, s *scene) { s.whenBegun(t, s.talk.Abort) },
			status: "Interrupted",
			told:   "assistant thought",
		},
		{
			name:   "aborted before it began",
			script: func(*scene) *script { return says(bash(submit)) },
			set:    func(_ *testing.T, s *scene) { s.talk.Abort() },
			status: "Interrupted",
		},
		{
			name:   "a person's own commands",
			script: func(*scene) *script { return says(bash("cat a.txt"), bash(submit)) },
			set: func(_ *testing.T, s *scene) {
				own := inTurn("echo ```x```; echo two >> a.txt; exit 3", "", "echo late")
				s.Person = person{turn: func() (string, error) { return own(), nil }}
			},
			status: "Submitted",
			told:   "user The user ran a command: | assistant thought | user [0] one | user The user ran a command: | assistant thought",
		},
		{
			name:   "a person hands in the work",
			script: func(*scene) *script { return says() },
			set: func(_ *testing.T, s *scene) {
				s.Person = person{turn: func() (string, error) { return submit, nil }}
			},
			status: "Submitted",
		},
		{
			name:   "a person leaves when asked for a turn",
			script: func(*scene) *script { return says() },
			set: func(_ *testing.T, s *scene) {
				s.Person = person{turn: func() (string, error) { return "", fmt.Errorf("%w: end of input", agent.ErrInterrupted) }}
			},
			status: "Interrupted",
		},
		{
			name:   "new tasks, then none",
			script: func(*scene) *script { return says(bash(submit), bash(submit), bash(submit)) },
			set:    func(_ *testing.T, s *scene) { s.Person = person{next: inTurn("and a", "and b")} },
			status: "Submitted",
			told:   "assistant thought | user and a | assistant thought | user and b | assistant thought",
		},
		{
			name:   "limits raised several times, then not",
			script: func(*scene) *script { return says(bash("true"), bash("true"), bash("true"), bash("true")) },
			set: func(_ *testing.T, s *scene) {
				s.cfg.StepLimit = 1
				s.Person = person{raise: func(l agent.Limits) (agent.Limits, bool) {
					return agent.Limits{Steps: l.Steps + 1}, l.Steps < 3
				}}
			},
			status: "LimitsExceeded",
			told:   "assistant thought | user [0]  | assistant thought | user [0]  | assistant thought | user [0] ",
		},
		{
			name:   "a limit raised by too little is reached again",
			script: func(*scene) *script { return says(bash("true"), bash(submit)) },
			set: func(_ *testing.T, s *scene) {
				s.cfg.CostLimit = 0.1
				s.Person = person{raise: func(l agent.Limits) (agent.Limits, bool) {
					return agent.Limits{Cost: 2 * l.Cost}, true
				}}
			},
			status: "Submitted",
			told:   "assistant thought | user [0]  | assistant thought",
		},
		{
			name:   "nobody is asked about the time",
			script: func(s *scene) *script { return says(bash(s.begins())) },
			set: func(t *testing.T, s *scene) {
				s.cfg.WallTimeLimit = 1
				s.whenBegun(t, func() {})
				s.Person = person{raise: func(l agent.Limits) (agent.Limits, bool) {
					t.Error("somebody was asked")
					return l, true
				}}
			},
			status: "TimeExceeded",
			told:   "assistant thought",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &scene{cfg: config(), talk: agent.NewTalk(), began: filepath.Join(t.TempDir(), "began")}
			if err := syscall.Mkfifo(s.began, 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.tools {
				s.cfg.Protocol = protocol.Tools
			}
			s.script = tt.script(s)
			s.Session = agent.Session{Model: s.script, Environment: repository(t), Talk: s.talk, Task: agent.Task{Text: "task"}}
			tt.set(t, s)
			out, journal := s.run(t)
			if out.ExitStatus != tt.status {
				t.Errorf("ended as %s: %s", out.ExitStatus, out.Error)
			}
			got, err := trajectories.Gather(trajectories.Read(journal))
			if err != nil {
				t.Fatal(err)
			}
			var history []trajectories.Message
			for _, e := range got.Entries {
				history = append(history, e.Message)
			}
			if diff := cmp.Diff(tt.told, told(history[min(2, len(history)):])); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			wellFormed(t, journal)
		})
	}
}

// run is one session, with a journal.
func (s *scene) run(t *testing.T) (trajectories.Outcome, string) {
	t.Helper()
	a, err := agent.New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	journal, err := trajectories.Create(path, trajectories.Header{InstanceID: "task", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.Recorder = journal
	out := a.Run(t.Context(), s.Session)
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	return out, path
}

// wellFormed holds a journal against the rules of its format, and against what
// can be gone on from.
func wellFormed(t *testing.T, journal string) {
	t.Helper()
	for _, p := range check.File(journal, check.Options{}).Problems {
		t.Error(p)
	}
	past, err := agent.Recall(trajectories.Read(journal))
	if err != nil || past == nil {
		t.Errorf("recall: %v", err)
	}
}

// An interruption while the model is asked ends that call, and the next one is
// told why.
func TestInterruptedWhileThinking(t *testing.T) {
	s := &scene{cfg: config(), talk: agent.NewTalk()}
	s.script = says()
	s.script.errs = map[int]error{}
	asked := make(chan struct{}, 2)
	s.Session = agent.Session{Model: announced{s.script, asked}, Environment: repository(t), Talk: s.talk, Task: agent.Task{Text: "task"}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-asked
		s.talk.Interrupt(message("do you hear me"))
		<-asked
		s.talk.Abort()
	}()
	out, journal := s.run(t)
	<-done
	if out.ExitStatus != "Interrupted" || out.Steps != 2 {
		t.Errorf("%s after %d steps: %s", out.ExitStatus, out.Steps, out.Error)
	}
	if last := s.script.seen[1][2:]; len(last) != 1 || last[0].Content != "do you hear me" {
		t.Errorf("the second call has %+v", last)
	}
	wellFormed(t, journal)
}

// announced is a model that says when it is asked.
type announced struct {
	*script
	asked chan<- struct{}
}

func (m announced) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	m.asked <- struct{}{}
	return m.script.Query(ctx, messages)
}

// What was handed in is not done again when somebody goes on with it.
func TestGoingOnAfterSubmission(t *testing.T) {
	for _, tools := range []bool{false, true} {
		t.Run(fmt.Sprintf("tools=%t", tools), func(t *testing.T) {
			s := &scene{cfg: config(), talk: agent.NewTalk(), script: says(bash("echo x >> log; " + submit))}
			if tools {
				s.cfg.Protocol = protocol.Tools
				s.script = &script{replies: []model.Reply{calls("echo x >> log; " + submit)}}
			}
			box := repository(t)
			s.Session = agent.Session{Model: s.script, Environment: box, Talk: s.talk, Task: agent.Task{Text: "task"}}
			_, path := s.run(t)

			past, err := agent.Recall(trajectories.Read(path))
			if err != nil {
				t.Fatal(err)
			}
			journal, err := trajectories.Continue(path, trajectories.Resume{Record: past.Record})
			if err != nil {
				t.Fatal(err)
			}
			again := says(bash("cat log"), bash(submit))
			if tools {
				again = &script{replies: []model.Reply{calls("cat log"), calls(submit)}}
			}
			talk := agent.NewTalk()
			talk.FollowUp("what is in the log?")
			a, err := agent.New(s.cfg)
			if err != nil {
				t.Fatal(err)
			}
			out := a.Run(t.Context(), agent.Session{Model: again, Environment: box, Recorder: journal, Talk: talk, Past: past})
			if err := errors.Join(journal.Close()); err != nil {
				t.Fatal(err)
			}
			if out.ExitStatus != "Submitted" || out.Steps != 3 {
				t.Errorf("%s after %d steps: %s", out.ExitStatus, out.Steps, out.Error)
			}
			seen := again.seen[1]
			if last := seen[len(seen)-1].Content; last != "[0] x\n" {
				t.Errorf("the log has %q", last)
			}
			if !slices.ContainsFunc(seen, func(m model.Message) bool { return m.Content == "what is in the log?" }) {
				t.Errorf("the model was not told what comes next: %+v", seen)
			}
			wellFormed(t, path)
		})
	}
}

// The time that somebody takes to decide is not the agent's.
func TestDecidingTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.WallTimeLimit, cfg.StepLimit = 60, 2
		a, err := agent.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		out := a.Run(t.Context(), agent.Session{
			Model: says(bash("work"), bash("work")), Environment: still{10 * time.Second}, Recorder: &memory{}, Task: agent.Task{Text: "task"},
			Supervisor: decides(func(agent.Proposal) agent.Decision {
				time.Sleep(time.Hour)
				return agent.Decision{Action: agent.Allow}
			}),
			Person: person{turn: func() (string, error) {
				time.Sleep(time.Hour)
				return "", nil
			}},
		})
		if out.ExitStatus != "LimitsExceeded" {
			t.Errorf("ended as %s after %d steps", out.ExitStatus, out.Steps)
		}
	})
}
