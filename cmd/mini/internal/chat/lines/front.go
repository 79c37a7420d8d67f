// Package lines is the plain front of a session: lines that follow one another,
// without moving the cursor, for any terminal, screen readers, and for no
// terminal at all.
package lines

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/safe"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/trajectories/timeline"
)

// Config is what a front needs.
type Config struct {
	Out io.Writer
	// Keyboard is nil where nobody answers.
	Keyboard *Keyboard
	// Colour allows bold and faint text, and the colours of outputs.
	Colour bool
}

// Front implements chat.Front.
type Front struct {
	Config
	controls chat.Controls
	stop     func() // ends reading between questions

	mu    sync.Mutex
	state chat.State
	shown shown
}

var _ chat.Front = (*Front)(nil)

// New makes a front that reads nothing between questions before Listen.
func New(c Config) *Front {
	f := &Front{Config: c, stop: func() {}}
	f.shown.front = f
	return f
}

// Listen reads lines between questions from now on. Close is to be called.
func (f *Front) Listen(c chat.Controls) {
	f.controls = c
	f.listen()
}

// Ended says that the front has shown how the attempt ended: it never does.
func (f *Front) Ended() bool { return false }

// Close reads no more.
func (f *Front) Close() { f.stop() }

func (f *Front) listen() {
	if f.controls == nil || f.Keyboard == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			text, err := f.Keyboard.line(ctx)
			if err != nil {
				return // the next question finds out why
			}
			f.controls.Input(text)
		}
	}()
	f.stop = func() {
		cancel()
		<-done
	}
}

// Ask implements chat.Front.
func (f *Front) Ask(ctx context.Context, q chat.Question) (string, error) {
	if f.Keyboard == nil {
		return "", chat.ErrLeft
	}
	f.stop()
	f.stop = func() {}
	defer f.listen() //nolint:contextcheck // what reads between questions outlives this one
	f.mu.Lock()
	f.shown.end()
	f.print("")
	if q.Kind != chat.AskTask || f.state.Step > 0 {
		f.print(f.faint(f.state.Line()))
	}
	f.question(q)
	f.mu.Unlock()
	text, err := f.Keyboard.answer(ctx, q)
	if err != nil {
		f.mu.Lock()
		f.print("") // the cursor stands behind the prompt
		f.mu.Unlock()
	}
	return text, err
}

// longCommand is how many lines are shown again of a command that stands above.
const longCommand = 12

func (f *Front) question(q chat.Question) {
	if q.Command != "" {
		text := strings.TrimRight(safe.Text(q.Command), "\n")
		if all := strings.Split(text, "\n"); f.shown.has(q.Command) && len(all) > longCommand {
			text = strings.Join(all[:longCommand], "\n") + fmt.Sprintf("\n[%d more lines, as above]", len(all)-longCommand)
		}
		f.print(f.bold("$ " + strings.ReplaceAll(text, "\n", "\n  ")))
		f.shown.command = q.Command
	}
	if q.Reason != "" {
		f.print(safe.Line(q.Reason))
	}
	text := f.bold(safe.Line(q.Text))
	if q.Hint != "" {
		text += " " + safe.Line(q.Hint)
	}
	if q.Multi {
		text += " (several lines; Ctrl-D ends them)"
	}
	f.print(text)
}

// State implements chat.Front.
func (f *Front) State(s chat.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = s
}

// maxDiff is how many lines of a diff are shown.
const maxDiff = 2000

// Tell implements chat.Front.
func (f *Front) Tell(n chat.Note) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown.end()
	if !n.Diff {
		f.print(safe.Text(n.Text))
		return
	}
	all := steps.Style{Plain: !f.Colour}.Item(&timeline.Item{Kind: timeline.Patch, Text: n.Text})
	for _, l := range all[:min(len(all), maxDiff)] {
		f.print(l.Text)
	}
	if len(all) > maxDiff {
		f.print(fmt.Sprintf("[%d more lines]", len(all)-maxDiff))
	}
}

// print writes a line; what counts is on record.
func (f *Front) print(line string) { _, _ = io.WriteString(f.Out, line+"\n") }

func (f *Front) bold(text string) string  { return f.styled(steps.Bold, text) }
func (f *Front) faint(text string) string { return f.styled(steps.Faint, text) }

func (f *Front) styled(style func(string) string, text string) string {
	if !f.Colour || text == "" {
		return text
	}
	return style(text)
}
