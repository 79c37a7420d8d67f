// Package plain is the plain frontend of a session. It prints line by line and never moves the
// cursor, for simple terminals, screen readers, and output without a terminal.
package plain

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/trajectories/timeline"
)

// Config configures a Frontend.
type Config struct {
	Out io.Writer
	// Keyboard reads answers; nil if there is no one to ask.
	Keyboard *Keyboard
	// Colour enables bold and faint text and the colours of outputs.
	Colour bool
}

// Frontend implements chat.Frontend.
type Frontend struct {
	Config
	controls chat.InputHandler
	stop     func() // stops reading between questions

	mu      sync.Mutex
	state   chat.State
	display display
}

var _ chat.Frontend = (*Frontend)(nil)

// New returns a frontend. It reads no input between questions until Listen is called.
func New(c Config) *Frontend {
	f := &Frontend{Config: c, stop: func() {}}
	f.display.frontend = f
	return f
}

// Listen starts to read lines between questions. The caller calls Close at the end.
func (f *Frontend) Listen(c chat.InputHandler) {
	f.controls = c
	f.startReading()
}

// HasShownOutcome reports whether the frontend has shown how the attempt ended: it never does.
func (f *Frontend) HasShownOutcome() bool { return false }

// Close stops reading.
func (f *Frontend) Close() { f.stop() }

func (f *Frontend) startReading() {
	if f.controls == nil || f.Keyboard == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			text, err := f.Keyboard.readLine(ctx)
			if err != nil {
				return // the next question returns the error
			}
			f.controls.Input(text)
		}
	}()
	f.stop = func() {
		cancel()
		<-done
	}
}

// Ask implements chat.Frontend.
func (f *Frontend) Ask(ctx context.Context, q chat.Question) (string, error) {
	if f.Keyboard == nil {
		return "", chat.ErrQuit
	}
	f.stop()
	f.stop = func() {}
	defer f.startReading() //nolint:contextcheck // the reader between questions outlives ctx
	f.mu.Lock()
	f.display.endLine()
	f.print("")
	if q.Kind != chat.AskTask || f.state.Step > 0 {
		f.print(f.faint(f.state.StatusLine()))
	}
	f.printQuestion(q)
	f.mu.Unlock()
	text, err := f.Keyboard.readAnswer(ctx, q)
	if err != nil {
		f.mu.Lock()
		f.print("") // end the prompt's line
		f.mu.Unlock()
	}
	return text, err
}

// maxRepeatedLines is how many lines are repeated of a command shown above.
const maxRepeatedLines = 12

func (f *Frontend) printQuestion(q chat.Question) {
	if q.Command != "" {
		text := strings.TrimRight(sanitize.Text(q.Command), "\n")
		if all := strings.Split(text, "\n"); f.display.replyContains(q.Command) && len(all) > maxRepeatedLines {
			text = strings.Join(all[:maxRepeatedLines], "\n") + fmt.Sprintf("\n[%d more lines, as above]", len(all)-maxRepeatedLines)
		}
		f.print(f.bold("$ " + strings.ReplaceAll(text, "\n", "\n  ")))
		f.display.askedCommand = q.Command
	}
	if q.Reason != "" {
		f.print(sanitize.Line(q.Reason))
	}
	text := f.bold(sanitize.Line(q.Text))
	if q.Hint != "" {
		text += " " + sanitize.Line(q.Hint)
	}
	if q.Multiline {
		text += " (several lines; Ctrl-D ends them)"
	}
	f.print(text)
}

// SetState implements chat.Frontend.
func (f *Frontend) SetState(s chat.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = s
}

// maxDiff is the number of lines shown of a diff.
const maxDiff = 2000

// ShowNotice implements chat.Frontend.
func (f *Frontend) ShowNotice(n chat.Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.display.endLine()
	if !n.IsDiff {
		f.print(sanitize.Text(n.Text))
		return
	}
	all := steps.Renderer{Plain: !f.Colour}.Item(&timeline.Item{Kind: timeline.Patch, Text: n.Text})
	for _, l := range all[:min(len(all), maxDiff)] {
		f.print(l.Text)
	}
	if len(all) > maxDiff {
		f.print(fmt.Sprintf("[%d more lines]", len(all)-maxDiff))
	}
}

// print writes a line. Write errors are ignored: the journal has everything.
func (f *Frontend) print(line string) { _, _ = io.WriteString(f.Out, line+"\n") }

func (f *Frontend) bold(text string) string  { return f.styled(steps.Bold, text) }
func (f *Frontend) faint(text string) string { return f.styled(steps.Faint, text) }

func (f *Frontend) styled(style func(string) string, text string) string {
	if !f.Colour || text == "" {
		return text
	}
	return style(text)
}
