// Package plain is a frontend of a session for simple terminals, screen readers, and output
// without a terminal. It prints the lines of package transcript without styles and never moves the
// cursor.
package plain

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/transcript"
	"github.com/minibench/mini/internal/sanitize"
)

// Config configures a Frontend.
type Config struct {
	Out io.Writer
	// Keyboard reads answers; nil if there is no user to ask.
	Keyboard *Keyboard
	// Width returns the width of prose in columns; 0 disables wrapping. It is nil if Out is not a
	// terminal.
	Width func() int
}

// Frontend implements chat.Frontend.
type Frontend struct {
	Config
	handler chat.InputHandler
	stop    func() // stops the goroutine that reads lines between questions

	mu         sync.Mutex
	transcript *transcript.Transcript
	ahead      []string // printed rows that are not finished; the last one has no newline yet
}

var _ chat.Frontend = (*Frontend)(nil)

// New returns a frontend. Until HandleInput is called, it reads input only at questions.
func New(c Config) *Frontend {
	f := &Frontend{Config: c, stop: func() {}}
	f.transcript = transcript.New(true, f.print)
	f.resize()
	return f
}

func (f *Frontend) resize() {
	if f.Width != nil {
		f.transcript.Resize(f.Width(), 0)
	}
}

// write ignores errors: the journal has everything.
func (f *Frontend) write(text string) { _, _ = io.WriteString(f.Out, text) }

// print prints a finished row, or what is not printed yet of it.
func (f *Frontend) print(row string) {
	switch ahead := f.ahead; {
	case len(ahead) > 1 && row == ahead[0]:
		f.ahead = ahead[1:]
		return
	case len(ahead) == 1 && strings.HasPrefix(row, ahead[0]):
		row = row[len(ahead[0]):]
	case len(ahead) > 0:
		row = "\n" + row
	}
	f.ahead = nil
	f.write(row + "\n")
}

// printAhead prints the complete words of the unfinished line of a reply.
func (f *Frontend) printAhead() {
	rows := f.transcript.Unfinished()
	if len(rows) == 0 {
		return
	}
	last := &rows[len(rows)-1]
	*last = strings.TrimRight((*last)[:strings.LastIndexByte(*last, ' ')+1], " ")
	for i, row := range rows {
		switch n := len(f.ahead); {
		case i < n-1 && row == f.ahead[i]:
			continue
		case i == n-1 && strings.HasPrefix(row, f.ahead[i]):
			f.write(row[len(f.ahead[i]):])
		case i < n:
			return
		default:
			f.write(row)
		}
		if i < len(rows)-1 {
			f.write("\n")
		}
	}
	f.ahead = rows
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
			f.mu.Lock()
			f.transcript.Input(text)
			f.mu.Unlock()
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
	f.show(q)
	text, err := f.Keyboard.readAnswer(ctx, q)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.write("\n") // the prompt's line has no newline yet
	} else {
		f.transcript.Answer(q, text)
	}
	return text, err
}

// show prints a question with its command and the status line.
func (f *Frontend) show(q chat.Question) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resize()
	f.transcript.Show(q)
	var lines []string
	if q.Kind != chat.AskTask || f.transcript.State.Step > 0 {
		lines = append(lines, f.transcript.State.StatusLine())
	}
	text := q.Text
	if q.Hint != "" {
		text += " " + q.Hint
	}
	if q.Multiline {
		text += " (several lines; Ctrl-D ends them)"
	}
	for _, line := range []string{q.Reason, text} {
		if line != "" {
			lines = append(lines, sanitize.Line(line))
		}
	}
	f.transcript.Print(lines...)
}

// ShowEvent implements chat.Frontend.
func (f *Frontend) ShowEvent(e events.Envelope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.transcript.Show(events.Content(e.Event))
	f.printAhead()
}

// ShowNotice implements chat.Frontend.
func (f *Frontend) ShowNotice(n chat.Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.transcript.Show(n)
}

// SetState implements chat.Frontend.
func (f *Frontend) SetState(s chat.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.transcript.State = s
}
