package lines

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/safe"
)

// shown is what stands on the terminal of the step under way.
type shown struct {
	front    *Front
	reply    strings.Builder // as it was streamed
	text     string          // of the last reply, whole
	command  string          // that was asked about last
	thinking bool            // the open line belongs to what the model thinks
	open     bool            // the line that was begun has no end yet
	output   *output
}

// Show implements chat.Front.
func (f *Front) Show(e events.Stamped) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.shown
	switch e := e.Event.(type) {
	case events.TurnStarted:
		s.end()
		s.reply.Reset()
		s.text, s.command = "", ""
		if f.state.Mode == chat.Yolo || f.Keyboard == nil {
			f.print("\n" + f.faint(f.state.Line()))
		}
	case events.TextDelta:
		s.delta(e)
	case events.Replied:
		s.replied(e)
	case events.Decided:
		if e.Action == string(agent.Deny) && e.By != agent.ByUser {
			s.end()
			f.print("Not run: " + safe.Line(e.Reason))
		}
	case events.ActionStarted:
		s.end()
		if !e.User && e.Command != s.command && !s.has(e.Command) {
			f.print(f.bold("$ " + strings.ReplaceAll(safe.Text(e.Command), "\n", "\n  ")))
		}
		s.output = newOutput(f)
	case events.OutputChunk:
		if s.output != nil {
			s.output.write(e.Data)
		}
	case events.ChildWorked:
		s.end()
		f.print(f.faint("  " + safe.Line(bounded(e.Text()))))
	case events.ActionEnded:
		s.ended(e)
	case events.FormatError:
		s.end()
		f.print(f.faint(safe.Text(e.Text)))
	case events.Compacted:
		s.end()
		f.print(f.faint(fmt.Sprintf("[the history was shortened (%s): about %d tokens are %d now]", safe.Line(e.Policy), e.TokensBefore, e.TokensAfter)))
	case events.Lost:
		s.end()
		f.print(fmt.Sprintf("[%d pieces could not be shown in time; the trajectory has them]", e.Count))
	}
}

// has says that the last reply that was shown has this text.
func (s *shown) has(command string) bool { return command != "" && strings.Contains(s.text, command) }

// end ends the line that was begun.
func (s *shown) end() {
	if s.open {
		s.front.print("")
		s.open = false
	}
}

func (s *shown) delta(e events.TextDelta) {
	if e.Restart && (s.reply.Len() > 0 || s.open) {
		s.end()
		s.reply.Reset()
		s.front.print("[the model is asked again; what it said is void]")
	}
	if e.Text == "" || e.Thinking && !s.front.state.Thinking {
		return
	}
	if s.open && e.Thinking != s.thinking {
		s.end()
	}
	if !e.Thinking {
		s.reply.WriteString(e.Text)
	}
	text := safe.Text(e.Text)
	s.thinking, s.open = e.Thinking, !strings.HasSuffix(text, "\n")
	if e.Thinking {
		text = s.front.faint(text)
	}
	_, _ = io.WriteString(s.front.Out, text)
}

func (s *shown) replied(e events.Replied) {
	s.end()
	s.text = e.Text
	if s.reply.Len() > 0 {
		return // it stands there
	}
	if e.Reasoning != "" && s.front.state.Thinking {
		s.front.print(s.front.faint(strings.TrimRight(safe.Text(e.Reasoning), "\n")))
	}
	if text := strings.TrimRight(safe.Text(e.Text), "\n"); text != "" {
		s.front.print(text)
	}
}

func (s *shown) ended(e events.ActionEnded) {
	if s.output != nil {
		s.output.close()
		s.output = nil
	}
	if e.ExitCode != 0 || e.Exception != "" {
		s.front.print(strings.TrimRight(fmt.Sprintf("[exit code %d] %s", e.ExitCode, safe.Line(e.Exception)), " "))
	}
}

// What is shown of the output of one command, in bytes: the journal has more.
const (
	maxOutput = 32 << 10
	maxTail   = 4 << 10
)

// output shows what a command prints, line by line: its beginning as it comes,
// and of a long one the end when it is over.
type output struct {
	front  *Front
	stream *safe.Stream
	bytes  int
	tail   []string
	held   int // bytes in tail
	left   int // lines that are not shown
}

func newOutput(f *Front) *output {
	o := &output{front: f}
	o.stream = safe.NewStream(o.line)
	return o
}

func (o *output) write(p []byte) { _, _ = o.stream.Write(p) }

func (o *output) line(text string) {
	if !o.front.Colour {
		text = ansi.Strip(text)
	}
	o.bytes += len(text) + 1
	if o.bytes <= maxOutput {
		o.front.print(text)
		return
	}
	o.tail, o.held = append(o.tail, text), o.held+len(text)+1
	for o.held > maxTail && len(o.tail) > 1 {
		o.held -= len(o.tail[0]) + 1
		o.tail = o.tail[1:]
		o.left++
	}
}

func (o *output) close() {
	_ = o.stream.Close()
	if o.left > 0 {
		o.front.print(fmt.Sprintf("[... %d lines not shown ...]", o.left))
	}
	for _, text := range o.tail {
		if len(text) > maxTail {
			text = ansi.Truncate(text, maxTail, "[...]")
		}
		o.front.print(text)
	}
}

// maxChild bounds a line about what a child does, in bytes.
const maxChild = 300

// bounded is a text that is cut where it is too long for a line.
func bounded(s string) string {
	if len(s) <= maxChild {
		return s
	}
	return s[:maxChild] + "..."
}
