package plain

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
)

// display tracks what is on the terminal of the current step.
type display struct {
	frontend     *Frontend
	reply        strings.Builder // the streamed reply
	lastReply    string          // the last complete reply
	askedCommand string          // the command of the last question
	openThinking bool            // the open line is reasoning
	lineOpen     bool            // the current line has no newline yet
	output       *output
}

// ShowEvent implements chat.Frontend.
func (f *Frontend) ShowEvent(e events.Envelope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.display
	switch e := e.Event.(type) {
	case events.TurnStarted:
		s.endLine()
		s.reply.Reset()
		s.lastReply, s.askedCommand = "", ""
		if f.state.Mode == chat.Yolo || f.Keyboard == nil {
			f.print("\n" + f.faint(f.state.StatusLine()))
		}
	case events.TextDelta:
		s.showDelta(e)
	case events.Replied:
		s.showReply(e)
	case events.Decided:
		if e.Action == string(agent.Deny) && e.By != agent.ByUser {
			s.endLine()
			f.print("Not run: " + sanitize.Line(e.Reason))
		}
	case events.ActionStarted:
		s.endLine()
		if !e.User && e.Command != s.askedCommand && !s.replyContains(e.Command) {
			f.print(f.bold("$ " + strings.ReplaceAll(sanitize.Text(e.Command), "\n", "\n  ")))
		}
		s.output = newOutput(f)
	case events.OutputChunk:
		if s.output != nil {
			s.output.write(e.Data)
		}
	case events.ChildProgress:
		s.endLine()
		f.print(f.faint("  " + sanitize.Line(text.Clip(e.Text(), maxSubagentLine))))
	case events.ActionEnded:
		s.showResult(e)
	case events.FormatError:
		s.endLine()
		f.print(f.faint(sanitize.Text(e.Text)))
	case events.Compacted:
		s.endLine()
		f.print(f.faint(fmt.Sprintf("[the conversation was compacted (%s): about %d tokens to %d]", sanitize.Line(e.Policy), e.TokensBefore, e.TokensAfter)))
	case events.Dropped:
		s.endLine()
		f.print(fmt.Sprintf("[%d events were not shown because the terminal is too slow; the trajectory has them]", e.Count))
	}
}

// replyContains reports whether the last reply contains a command.
func (s *display) replyContains(command string) bool {
	return command != "" && strings.Contains(s.lastReply, command)
}

// endLine ends the current line.
func (s *display) endLine() {
	if s.lineOpen {
		s.frontend.print("")
		s.lineOpen = false
	}
}

func (s *display) showDelta(e events.TextDelta) {
	if e.Restart && (s.reply.Len() > 0 || s.lineOpen) {
		s.endLine()
		s.reply.Reset()
		s.frontend.print("[the request is retried; the partial reply is discarded]")
	}
	if e.Text == "" || e.Thinking && !s.frontend.state.ShowThinking {
		return
	}
	if s.lineOpen && e.Thinking != s.openThinking {
		s.endLine()
	}
	if !e.Thinking {
		s.reply.WriteString(e.Text)
	}
	text := sanitize.Text(e.Text)
	s.openThinking, s.lineOpen = e.Thinking, !strings.HasSuffix(text, "\n")
	if e.Thinking {
		text = s.frontend.faint(text)
	}
	_, _ = io.WriteString(s.frontend.Out, text)
}

func (s *display) showReply(e events.Replied) {
	s.endLine()
	s.lastReply = e.Text
	if s.reply.Len() > 0 {
		return // already streamed
	}
	if e.Reasoning != "" && s.frontend.state.ShowThinking {
		s.frontend.print(s.frontend.faint(strings.TrimRight(sanitize.Text(e.Reasoning), "\n")))
	}
	if text := strings.TrimRight(sanitize.Text(e.Text), "\n"); text != "" {
		s.frontend.print(text)
	}
}

func (s *display) showResult(e events.ActionEnded) {
	if s.output != nil {
		s.output.close()
		s.output = nil
	}
	if e.ExitCode != 0 || e.Exception != "" {
		s.frontend.print(strings.TrimRight(fmt.Sprintf("[exit code %d] %s", e.ExitCode, sanitize.Line(e.Exception)), " "))
	}
}

// Bounds of the output shown of one command, in bytes; the journal has all.
const (
	maxOutput = 32 << 10
	maxTail   = 4 << 10
)

// output prints the output of a command line by line: the beginning as it arrives and, if it
// is long, the end when the command has ended.
type output struct {
	frontend  *Frontend
	stream    *sanitize.Stream
	bytes     int
	tail      []string
	tailBytes int // size of tail
	omitted   int // number of lines not shown
}

func newOutput(f *Frontend) *output {
	o := &output{frontend: f}
	o.stream = sanitize.NewStream(o.addLine)
	return o
}

func (o *output) write(p []byte) { _, _ = o.stream.Write(p) }

func (o *output) addLine(text string) {
	if !o.frontend.Colour {
		text = ansi.Strip(text)
	}
	o.bytes += len(text) + 1
	if o.bytes <= maxOutput {
		o.frontend.print(text)
		return
	}
	o.tail, o.tailBytes = append(o.tail, text), o.tailBytes+len(text)+1
	for o.tailBytes > maxTail && len(o.tail) > 1 {
		o.tailBytes -= len(o.tail[0]) + 1
		o.tail = o.tail[1:]
		o.omitted++
	}
}

func (o *output) close() {
	_ = o.stream.Close()
	if o.omitted > 0 {
		o.frontend.print(fmt.Sprintf("[... %d lines not shown ...]", o.omitted))
	}
	for _, text := range o.tail {
		if len(text) > maxTail {
			text = ansi.Truncate(text, maxTail, "[...]")
		}
		o.frontend.print(text)
	}
}

// maxSubagentLine bounds a line about a subagent, in bytes.
const maxSubagentLine = 300
