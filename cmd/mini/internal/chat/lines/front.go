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
)

// Keyboard reads what the person types. Calls come one at a time.
type Keyboard interface {
	// Read shows the prompt and returns what was typed, without its last line
	// end. It returns chat.ErrLeft at the end of input, chat.ErrInterrupt for
	// Ctrl-C where that is a key, and the cause of ctx when that ends.
	Read(ctx context.Context, p Prompt) (string, error)
}

// Prompt is what a Keyboard is to read.
type Prompt struct {
	// Text stands before what is typed; it may be empty.
	Text string
	// Multi is for a text of several lines.
	Multi bool
	// Secret is not shown and not kept.
	Secret bool
	// Idle says that no question is open: nothing is to be shown but what is typed.
	Idle bool
}

// Config is what a front needs.
type Config struct {
	Out io.Writer
	// Keyboard is nil where nobody answers.
	Keyboard Keyboard
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
			text, err := f.Keyboard.Read(ctx, Prompt{Idle: true})
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
	text, err := f.Keyboard.Read(ctx, Prompt{Text: "> ", Multi: q.Multi, Secret: q.Secret})
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
	all := strings.Split(strings.TrimRight(n.Text, "\n"), "\n")
	for i, l := range all {
		if i == maxDiff {
			f.print(fmt.Sprintf("[%d more lines]", len(all)-i))
			break
		}
		f.print(f.coloured(safe.Text(l)))
	}
}

// print writes a line; what counts is on record.
func (f *Front) print(line string) { _, _ = io.WriteString(f.Out, line+"\n") }

const (
	sgrBold, sgrFaint = "\x1b[1m", "\x1b[2m"
	sgrRed, sgrGreen  = "\x1b[31m", "\x1b[32m"
	sgrReset          = "\x1b[m"
)

func (f *Front) styled(sgr, text string) string {
	if !f.Colour || text == "" {
		return text
	}
	return sgr + text + sgrReset
}

func (f *Front) bold(text string) string  { return f.styled(sgrBold, text) }
func (f *Front) faint(text string) string { return f.styled(sgrFaint, text) }

// coloured is a line of a diff.
func (f *Front) coloured(line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
		return f.bold(line)
	case strings.HasPrefix(line, "+"):
		return f.styled(sgrGreen, line)
	case strings.HasPrefix(line, "-"):
		return f.styled(sgrRed, line)
	}
	return line
}
