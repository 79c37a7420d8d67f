package chat

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
)

// notices is a Frontend that collects the messages of mini.
type notices struct{ text []string }

func (*notices) Ask(context.Context, Question) (string, error) { return "", ErrQuit }
func (*notices) ShowEvent(events.Envelope)                     {}
func (*notices) SetState(State)                                {}
func (n *notices) ShowNotice(m Notice)                         { n.text = append(n.text, m.Text) }

// /model lists the models of the server, and takes a part of the name of one.
func TestSwitchModel(t *testing.T) {
	listed := []string{"big-1", "small-1", "small-2", "evil\x1b[31m"}
	for name, test := range map[string]struct {
		argument string
		listErr  error
		want     string // the model that is switched to; "" for none
		shown    []string
	}{
		"no name":           {"", nil, "", []string{"The model is first; /model NAME switches", "host has:\n  big-1\n  small-1\n  small-2\n  evil"}},
		"a name":            {"small-2", nil, "small-2", []string{"Switched to small-2"}},
		"a part of one":     {"BIG", nil, "big-1", []string{"Switched to big-1"}},
		"a part of several": {"small", nil, "", []string{"host has:\n  small-1\n  small-2"}},
		"another name":      {"claude", nil, "claude", []string{"Switched to claude"}},
		"no list":           {"", errors.New("host does not answer"), "", []string{"The model is first", "There is no list of models: host does not answer"}},
		"a name, no list":   {"small", errors.New("host does not answer"), "small", []string{"Switched to small"}},
	} {
		t.Run(name, func(t *testing.T) {
			var shown notices
			used := ""
			s := New(Config{
				Frontend: &shown, Inbox: agent.NewInbox(), State: State{Model: "first"},
				SwitchModel: func(_ context.Context, name string) (string, error) { used = name; return name, nil },
				ListModels:  func(context.Context) ([]string, string, error) { return listed, "host", test.listErr },
			})
			defer s.Close()
			s.switchModel(t.Context(), test.argument)
			text := strings.Join(shown.text, "\n")
			if used != test.want {
				t.Errorf("switched to %q, want %q:\n%s", used, test.want, text)
			}
			for _, want := range test.shown {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if strings.Contains(text, "\x1b") {
				t.Errorf("%q has control characters", text)
			}
		})
	}
}
