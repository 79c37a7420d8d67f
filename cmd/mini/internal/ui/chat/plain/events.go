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
	"github.com/minibench/mini/trajectories"
)

// display records what has been printed of the current step.
type display struct {
	frontend     *Frontend
	reply        strings.Builder // the streamed part of the reply
	lastReply    string          // the complete reply
	askedCommand string          // the command of the last question
	lineOpen     bool            // the last printed line has no newline yet
	openThinking bool            // the line without a newline is reasoning
	output       *output         // output of the running command; nil if none runs
}

// ShowEvent implements chat.Frontend.
func (f *Frontend) ShowEvent(e events.Envelope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := &f.display
	switch e := events.Content(e.Event).(type) {
	case events.PhaseStarted:
		d.endLine()
		switch e.Phase {
		case events.PhaseThinking:
			d.reply.Reset()
			d.lastReply, d.askedCommand = "", ""
			if f.state.Mode == chat.Yolo || f.Keyboard == nil {
				f.print("\n" + f.faint(f.state.StatusLine()))
			}
		case events.PhaseRunning:
			if !e.ByUser && e.Command != d.askedCommand && !d.replyContains(e.Command) {
				f.print(f.bold("$ " + strings.ReplaceAll(sanitize.Text(e.Command), "\n", "\n  ")))
			}
			d.output = newOutput(f)
		}
	case events.TextDelta:
		d.showDelta(e)
	case trajectories.Message:
		switch e.Cause {
		case trajectories.CauseReply:
			d.showReply(e)
		case trajectories.CauseFormatError:
			d.endLine()
			f.print(f.faint(sanitize.Text(e.Content)))
		}
	case trajectories.CommandDecision:
		if e.Action != agent.Allow && e.By != agent.ByUser {
			d.endLine()
			f.print("Not run: " + sanitize.Line(e.Reason))
		}
	case events.OutputChunk:
		if d.output != nil {
			d.output.write(e.Data)
		}
	case events.ChildProgress:
		d.endLine()
		f.print(f.faint("  " + sanitize.Line(text.Clip(e.Text(), maxSubagentLine))))
	case trajectories.Execution:
		d.showResult(e)
	case events.FilesChanged:
		d.endLine()
		f.print(f.faint("  changed: " + sanitize.Line(e.Text())))
	case trajectories.Compaction:
		d.endLine()
		f.print(f.faint(fmt.Sprintf("[the conversation was compacted (%s): about %d tokens to %d]",
			sanitize.Line(e.Policy), e.TokensBefore, e.TokensAfter)))
		if e.Fallback != "" {
			f.print("warning: extracts of the commands replace summaries: " + sanitize.Line(text.Clip(e.Fallback, 300)))
		}
	case events.Dropped:
		d.endLine()
		f.print(fmt.Sprintf("[%d events were not shown because the terminal is too slow; the trajectory has them]", e.Count))
	}
}

// replyContains reports whether the last reply contains a command.
func (d *display) replyContains(command string) bool {
	return command != "" && strings.Contains(d.lastReply, command)
}

// endLine prints the newline that the last line lacks, if any.
func (d *display) endLine() {
	if d.lineOpen {
		d.frontend.print("")
		d.lineOpen = false
	}
}

func (d *display) showDelta(e events.TextDelta) {
	if e.Restart && (d.reply.Len() > 0 || d.lineOpen) {
		d.endLine()
		d.reply.Reset()
		d.frontend.print("[the request is retried; the partial reply is discarded]")
	}
	if e.Text == "" || e.Thinking && !d.frontend.state.ShowThinking {
		return
	}
	if d.lineOpen && e.Thinking != d.openThinking {
		d.endLine()
	}
	if !e.Thinking {
		d.reply.WriteString(e.Text)
	}
	text := sanitize.Text(e.Text)
	d.openThinking, d.lineOpen = e.Thinking, !strings.HasSuffix(text, "\n")
	if e.Thinking {
		text = d.frontend.faint(text)
	}
	_, _ = io.WriteString(d.frontend.Out, text)
}

func (d *display) showReply(m trajectories.Message) {
	d.endLine()
	d.lastReply = m.Content
	if d.reply.Len() > 0 {
		return // already streamed
	}
	if m.Reasoning != "" && d.frontend.state.ShowThinking {
		d.frontend.print(d.frontend.faint(strings.TrimRight(sanitize.Text(m.Reasoning), "\n")))
	}
	if text := strings.TrimRight(sanitize.Text(m.Content), "\n"); text != "" {
		d.frontend.print(text)
	}
}

func (d *display) showResult(x trajectories.Execution) {
	if d.output != nil {
		d.output.close()
		d.output = nil
	}
	if x.ExitCode != 0 || x.Exception != "" {
		d.frontend.print(strings.TrimRight(fmt.Sprintf("[exit code %d] %s", x.ExitCode, sanitize.Line(x.Exception)), " "))
	}
}

// Bounds of the output shown of one command, in bytes. If the last line alone exceeds maxTail
// bytes, it is cut to maxTail columns. The journal has the whole output.
const (
	maxOutput = 32 << 10 // beginning
	maxTail   = 4 << 10  // end
)

// output prints the output of a command, by lines: the beginning as it arrives and, if the output
// is long, the end when the command has ended.
type output struct {
	frontend *Frontend
	stream   *sanitize.Stream
	size     int      // size of all lines so far
	tail     []string // the last lines, which are not printed yet
	tailSize int      // size of tail
	omitted  int      // number of lines dropped between the beginning and tail
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
	o.size += len(text) + 1
	if o.size <= maxOutput {
		o.frontend.print(text)
		return
	}
	o.tail, o.tailSize = append(o.tail, text), o.tailSize+len(text)+1
	for o.tailSize > maxTail && len(o.tail) > 1 {
		o.tailSize -= len(o.tail[0]) + 1
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

// maxSubagentLine bounds a line about a subagent, in bytes without the ellipsis.
const maxSubagentLine = 300
