package chat

import (
	"context"
	"errors"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
)

// says is a front that answers with these, one after the other.
type says struct {
	answers []string
	asked   []Question
}

func (f *says) Ask(_ context.Context, q Question) (string, error) {
	f.asked = append(f.asked, q)
	if len(f.asked) > len(f.answers) {
		return "", ErrLeft
	}
	return f.answers[len(f.asked)-1], nil
}

func (*says) Show(events.Stamped) {}
func (*says) Tell(Note)           {}
func (*says) State(State)         {}

func TestTakingOverEndsAChild(t *testing.T) {
	for _, tt := range []struct {
		name    string
		mode    Mode
		answers []string
		child   bool
		text    string // of the question; "" where nobody is asked
		ends    bool
		want    agent.Verb
	}{
		{"a child, before", Human, nil, true, "", true, ""},
		{"a child, when asked", Confirm, []string{"/u"}, true, "Run this command of a child?", true, ""},
		{"a child may run", Confirm, []string{""}, true, "Run this command of a child?", false, agent.Allow},
		{"the agent, before", Human, nil, false, "", false, agent.Deny},
		{"the agent, when asked", Confirm, []string{"/u"}, false, "Run this command?", false, agent.Deny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			front := &says{answers: tt.answers}
			s := New(Config{Front: front, Mode: tt.mode})
			defer s.Close()
			d, err := s.Decide(t.Context(), agent.Proposal{Command: "ls", Child: tt.child})
			if errors.Is(err, agent.ErrInterrupted) != tt.ends || !tt.ends && err != nil || d.Action != tt.want {
				t.Errorf("%+v, %v", d, err)
			}
			text := ""
			for _, q := range front.asked {
				text += q.Text
			}
			if text != tt.text {
				t.Errorf("asked %q", text)
			}
		})
	}
}
