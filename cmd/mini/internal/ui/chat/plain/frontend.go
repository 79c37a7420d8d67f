// Package plain is a frontend of a session for simple terminals, screen readers, and output
// without a terminal. It prints line by line and never moves the cursor.
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
	// Keyboard reads answers; nil if there is no user to ask.
	Keyboard *Keyboard
	// Colour enables bold and faint text and the colours of outputs.
	Colour bool
}

// Frontend implements chat.Frontend.
type Frontend struct {
	Config
	handler chat.InputHandler
	stop    func() // stops the goroutine that reads lines between questions

	mu      sync.Mutex
	state   chat.State
	display display
}

var _ chat.Frontend = (*Frontend)(nil)

// New returns a frontend. Until HandleInput is called, it reads input only at questions.
func New(c Config) *Frontend {
	f := &Frontend{Config: c, stop: func() {}}
	f.display.frontend = f
	return f
}

// HandleInput starts to read lines between questions and passes them to the handler. The caller
// calls Close at the end.
func (f *Frontend) HandleInput(handler chat.InputHandler) {
	f.handler = handler
	f.startReading()
}

// HasShownOutcome returns false: this frontend does not show the outcome of the attempt.
func (f *Frontend) HasShownOutcome() bool { return false }

// Draft returns "": the terminal edits the line.
func (f *Frontend) Draft() string { return "" }

// Close stops reading.
func (f *Frontend) Close() { f.stop() }

// startReading starts a goroutine that passes each line to the input handler.
func (f *Frontend) startReading() {
	if f.handler == nil || f.Keyboard == nil {
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
			f.handler.Input(text)
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
	defer f.startReading() //nolint:contextcheck // the goroutine between questions outlives ctx
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
		f.print("") // the prompt's line has no newline yet
		f.mu.Unlock()
	}
	return text, err
}

// maxRepeatedLines bounds how much of a command is printed again if the reply has shown it.
const maxRepeatedLines = 12

func (f *Frontend) printQuestion(q chat.Question) {
	if q.Command != "" {
		text := strings.TrimRight(sanitize.Text(q.Command), "\n")
		if lines := strings.Split(text, "\n"); f.display.replyContains(q.Command) && len(lines) > maxRepeatedLines {
			text = strings.Join(lines[:maxRepeatedLines], "\n") +
				fmt.Sprintf("\n[%d more lines, as above]", len(lines)-maxRepeatedLines)
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

// maxDiff is the maximum number of lines printed of a diff.
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
	lines := steps.Renderer{Plain: !f.Colour}.Item(&timeline.Item{Kind: timeline.Patch, Text: n.Text})
	for _, l := range lines[:min(len(lines), maxDiff)] {
		f.print(l.Text)
	}
	if len(lines) > maxDiff {
		f.print(fmt.Sprintf("[%d more lines]", len(lines)-maxDiff))
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
