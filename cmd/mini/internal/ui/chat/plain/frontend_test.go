package plain_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/plain"
	"github.com/minibench/mini/internal/sanitize/attacktest"
	"github.com/minibench/mini/trajectories"
)

// Words are printed as soon as they are complete. Only a line that a message interrupts is printed again.
func TestWordsAreStreamed(t *testing.T) {
	var out strings.Builder
	f := plain.New(plain.Config{Out: &out, Width: func() int { return 20 }})
	f.SetState(chat.State{ShowThinking: true})
	show := func(e events.Event) { f.ShowEvent(events.Envelope{Event: e}) }
	type step struct {
		show any
		want string // the new output
	}
	for i, s := range []step{
		{events.TextDelta{Text: "let me se", Thinking: true}, "let me"},
		{events.TextDelta{Text: "e \n\nwhy", Thinking: true}, " see\n\n"},
		{events.TextDelta{Text: " not", Thinking: true}, "why"},
		{events.TextDelta{Text: "I look at the "}, " not\n\nI look at the"},
		{events.TextDelta{Text: "very long"}, " very\n"},
		{events.TextDelta{Text: "est path, then **go** "}, "longest path, then\n**go**"},
		{chat.Notice{Text: "a note"}, "\na note\n"},
		{events.TextDelta{Text: "on\n| a | b"}, "\nI look at the very\nlongest path, then\n**go** on\n"},
		{events.TextDelta{Text: " |\n|--|--|\n\n```bash\nls "}, "a  b\n-  -\n"},
	} {
		before := out.Len()
		switch e := s.show.(type) {
		case chat.Notice:
			f.ShowNotice(e)
		case events.Event:
			show(e)
		}
		if got := out.String()[before:]; got != s.want {
			t.Errorf("step %d: %q, want %q", i, got, s.want)
		}
	}
	before := out.Len()
	m := trajectories.Message{Cause: trajectories.CauseReply, Actions: []string{"ls -l"}}
	m.Content = "I look at the very longest path, then **go** on\n| a | b |\n|--|--|\n\n```bash\nls -l\n```"
	show(events.Recorded{Data: m})
	show(events.PhaseStarted{Phase: events.PhaseRunning, Command: "ls -l"})
	if got := out.String()[before:]; got != "\n$ ls -l\n" {
		t.Errorf("at the end: %q", got)
	}
}

// Untrusted text cannot control the terminal, and has no colours.
func TestUntrustedText(t *testing.T) {
	for _, a := range attacktest.Attacks() {
		for _, size := range []int{1, 1000} {
			var out strings.Builder
			f := plain.New(plain.Config{Out: &out, Width: func() int { return 40 }})
			f.SetState(chat.State{ShowThinking: true})
			show := func(e events.Event) { f.ShowEvent(events.Envelope{Event: e}) }
			for _, thinking := range []bool{true, false} {
				for rest := a.Text[:min(len(a.Text), 500)]; rest != ""; {
					n := min(size, len(rest))
					show(events.TextDelta{Text: rest[:n], Thinking: thinking})
					rest = rest[n:]
				}
			}
			show(events.PhaseStarted{Phase: events.PhaseRunning, Command: a.Text})
			show(events.OutputChunk{Data: []byte(a.Text)})
			show(events.Recorded{Data: trajectories.Execution{ExitCode: -1, Exception: a.Text}})
			f.ShowNotice(chat.Notice{Text: a.Text, IsDiff: true})
			for line := range strings.SplitSeq(out.String(), "\n") {
				if bad := attacktest.FindControl(line, 0); bad != "" {
					t.Fatalf("%s: %s: %.300q", a.Name, bad, line)
				}
			}
		}
	}
}
