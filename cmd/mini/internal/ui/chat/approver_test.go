package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
)

// scriptedFrontend answers the questions with answers, in order, and then quits. The answer "^C"
// interrupts.
type scriptedFrontend struct {
	answers []string
	asked   []Question
}

func (f *scriptedFrontend) Ask(_ context.Context, q Question) (string, error) {
	f.asked = append(f.asked, q)
	if len(f.asked) > len(f.answers) {
		return "", ErrQuit
	}
	if f.answers[len(f.asked)-1] == "^C" {
		return "", ErrInterrupted
	}
	return f.answers[len(f.asked)-1], nil
}

func (*scriptedFrontend) ShowEvent(events.Envelope) {}
func (*scriptedFrontend) ShowNotice(Notice)         {}
func (*scriptedFrontend) SetState(State)            {}

func TestHumanModeInterruptsSubagent(t *testing.T) {
	for _, tt := range []struct {
		name    string
		mode    Mode
		answers []string
		child   bool
		text    string // text of the question; "" if none is asked
		ends    bool   // the agent or subagent is interrupted
		want    agent.DecisionAction
	}{
		{"a subagent in human mode", Human, nil, true, "", true, ""},
		{"a subagent in confirm mode", Confirm, []string{""}, true, "Run this command of a subagent? [Y/n/e]", false, agent.Allow},
		{"the agent in human mode", Human, nil, false, "", false, agent.Deny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			frontend := &scriptedFrontend{answers: tt.answers}
			s := New(Config{Frontend: frontend, Mode: tt.mode})
			defer s.Close()
			d, err := s.Decide(t.Context(), agent.ApprovalRequest{Command: "ls", FromChild: tt.child})
			if errors.Is(err, agent.ErrInterrupted) != tt.ends || !tt.ends && err != nil || d.Action != tt.want {
				t.Errorf("%+v, %v", d, err)
			}
			text := ""
			for _, q := range frontend.asked {
				text += q.Text
			}
			if text != tt.text {
				t.Errorf("asked %q", text)
			}
		})
	}
}

// A slash command that changes the mode does not answer a question: the question is asked again.
func TestModeChangeKeepsQuestion(t *testing.T) {
	snapshot := fixedSnapshot{Changes{Patch: "+a", Summary: "1 file changed"}}
	for _, mode := range []Mode{Confirm, Yolo, Human} {
		for _, kind := range []struct {
			name string
			ask  func(s *Session) (any, error)
			want any
		}{
			{"the task", func(s *Session) (any, error) { return s.ReadTask(t.Context(), Question{Text: "What?"}) }, "n"},
			{"the changes", func(s *Session) (any, error) { return nil, s.askUndo(t.Context(), "") }, nil},
			{"the limit", func(s *Session) (any, error) {
				_, raised, err := s.RaiseLimits(t.Context(), agent.Limits{Steps: 1})
				return raised, err
			}, false},
		} {
			frontend := &scriptedFrontend{answers: []string{"/" + mode.String(), "/c", "/y", "/u", "/" + mode.String(), "n"}}
			s := New(Config{Frontend: frontend, Mode: Confirm, Snapshot: snapshot})
			got, err := kind.ask(s)
			if err != nil || got != kind.want || len(frontend.asked) != len(frontend.answers) || s.currentMode() != mode {
				t.Errorf("%s, to %s: %v, %v after %d questions, in %s mode",
					kind.name, mode, got, err, len(frontend.asked), s.currentMode())
			}
			s.Close()
		}
	}
}

// A change of the mode decides on the command that waits, and human mode asks for no message.
func TestModeChangeAnswers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []string
		child   bool
		want    string
	}{
		{"yolo runs it", []string{"/c", "/y"}, false, "allow<nil>"},
		{"yolo runs that of a subagent", []string{"/y"}, true, "allow<nil>"},
		{"human rejects it", []string{"/u"}, false, "denyI take over and run commands myself for now.<nil>"},
		{"human interrupts a subagent", []string{"/u"}, true, "Interrupted"},
	} {
		frontend := &scriptedFrontend{answers: tt.answers}
		s := New(Config{Frontend: frontend, Mode: Confirm})
		d, err := s.askConfirm(t.Context(), agent.ApprovalRequest{Command: "ls", FromChild: tt.child}, agent.Decision{})
		if got := fmt.Sprint(d.Action, d.Reason, err); got != tt.want || len(frontend.asked) != len(tt.answers) {
			t.Errorf("%s: %s after %d questions", tt.name, got, len(frontend.asked))
		}
		s.Close()
	}
	frontend := &scriptedFrontend{answers: []string{"/y", "/u"}}
	s := New(Config{Frontend: frontend, Mode: Confirm})
	if text, err := s.askMessage(t.Context()); text != "" || err != nil || len(frontend.asked) != 2 {
		t.Errorf("a message: %q, %v after %d questions", text, err, len(frontend.asked))
	}
	s.Close()
}

// fixedApprover decides always the same.
type fixedApprover agent.Decision

func (f fixedApprover) Decide(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
	return agent.Decision(f), nil
}

// In yolo mode no user is asked: an explicit policy.unattended: deny holds, and so do denials.
func TestYoloUnattended(t *testing.T) {
	for _, tt := range []struct {
		policy, unattended, want agent.DecisionAction
		by                       string
	}{
		{agent.Ask, "", agent.Allow, byMode},
		{agent.Ask, agent.Allow, agent.Allow, byMode},
		{agent.Ask, agent.Deny, agent.Deny, byUnattended},
		{agent.Allow, agent.Deny, agent.Allow, byMode},
		{agent.Deny, agent.Allow, agent.Deny, byDefault},
	} {
		s := New(Config{
			Frontend: &scriptedFrontend{}, Mode: Yolo, Unattended: tt.unattended,
			Policy: fixedApprover{Action: tt.policy, By: byDefault, Reason: "it leaves the folder"},
		})
		d, err := s.Decide(t.Context(), agent.ApprovalRequest{Command: "ls"})
		if err != nil || d.Action != tt.want || d.By != tt.by || d.By == byUnattended && !strings.Contains(d.Reason, "it leaves the folder") {
			t.Errorf("%s, unattended %q: %+v, %v; want %s by %s", tt.policy, tt.unattended, d, err, tt.want, tt.by)
		}
		s.Close()
	}
}

// fixedSnapshot returns fixed changes and cannot undo them.
type fixedSnapshot struct{ changes Changes }

func (t fixedSnapshot) Diff(context.Context) (Changes, error) { return t.changes, nil }
func (fixedSnapshot) Undo(context.Context, Changes) (string, error) {
	return "", errors.New("taken back")
}
func (fixedSnapshot) RecordStep(context.Context, int) (Changes, error) { return Changes{}, nil }
func (fixedSnapshot) SkipChanges(context.Context) error                { return nil }
func (fixedSnapshot) LastStep(context.Context) (Changes, error)        { return Changes{}, nil }
func (fixedSnapshot) UndoStep(context.Context) (string, error)         { return "", errors.New("no step") }

// All yes-or-no questions accept yes, no and Enter in the same way.
func TestYesNo(t *testing.T) {
	decide := func(s *Session) string {
		d, err := s.askConfirm(t.Context(), agent.ApprovalRequest{Command: "ls"}, agent.Decision{})
		return fmt.Sprint(d.Action, d.Reason, err)
	}
	next := func(s *Session) string {
		text, err := s.NextTask(t.Context(), nil)
		return fmt.Sprint(text, err)
	}
	undo := func(s *Session) string { return fmt.Sprint(s.askUndo(t.Context(), "")) }
	for _, tt := range []struct {
		name    string
		ask     func(s *Session) string
		answers []string
		want    string
		undone  bool
	}{
		{"run", decide, []string{""}, "allow<nil>", false},
		{"run", decide, []string{"Y"}, "allow<nil>", false},
		{"run", decide, []string{" yes "}, "allow<nil>", false},
		{"run", decide, []string{"no"}, "deny<nil>", false},
		{"run", decide, []string{"N"}, "deny<nil>", false},
		{"run", decide, []string{"yes but"}, "denyyes but<nil>", false},
		{"end", next, []string{""}, "<nil>", false},
		{"end", next, []string{"y"}, "<nil>", false},
		{"end", next, []string{"n", ""}, "<nil>", false},
		{"end", next, []string{"OK"}, "<nil>", false},
		{"end", next, []string{"no", "more"}, "more<nil>", false},
		{"end", next, []string{"/undo", "y", ""}, "<nil>", true},
		{"undo", undo, []string{""}, "<nil>", false},
		{"undo", undo, []string{"no"}, "<nil>", false},
		{"undo", undo, []string{"u", "/undo", "Yes"}, "<nil>", true},
	} {
		frontend := &scriptedFrontend{answers: tt.answers}
		snapshot := &undoableSnapshot{fixedSnapshot: fixedSnapshot{Changes{Patch: "+a", Summary: "1 file changed"}}}
		s := New(Config{Frontend: frontend, Snapshot: snapshot, ConfirmExit: true, Inbox: agent.NewInbox()})
		got := tt.ask(s)
		if got != tt.want || snapshot.undone != tt.undone || len(frontend.asked) != len(tt.answers) {
			t.Errorf("%s, %q: %q, undone %t, after %d questions", tt.name, tt.answers, got, snapshot.undone, len(frontend.asked))
		}
		for i, q := range frontend.asked {
			if tt.name == "end" && i == 1 {
				continue // the question of /undo, or for the next task
			}
			if want := map[string]string{"undo": "[y/N]", "run": "[Y/n/e]", "end": "[Y/n]"}[tt.name]; !strings.HasSuffix(q.Text, " "+want) {
				t.Errorf("%q does not end with %s", q.Text, want)
			}
		}
		s.Close()
	}
}

// undoableSnapshot records that its changes were undone.
type undoableSnapshot struct {
	fixedSnapshot
	undone bool
}

func (u *undoableSnapshot) Undo(context.Context, Changes) (string, error) {
	u.undone = true
	return "Undone.", nil
}
