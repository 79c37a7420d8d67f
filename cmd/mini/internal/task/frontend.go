package task

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/history"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/plain"
	rich "github.com/minibench/mini/cmd/mini/internal/ui/chat/term"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/userdirs"
)

// frontend is a chat.Frontend that reads input and must be closed.
type frontend interface {
	chat.Frontend
	// HandleInput passes input that the user types between questions to c.
	HandleInput(c chat.InputHandler)
	// HasShownOutcome reports whether the frontend has shown the outcome.
	HasShownOutcome() bool
	// Close restores the terminal.
	Close()
	// Draft returns the text of the input field when the frontend was closed.
	Draft() string
}

// newFrontend returns the plain frontend for --plain, MINI_PLAIN, or a terminal that does not
// support the full-screen frontend; otherwise the full-screen frontend. environ is the environment
// of pagers, draft the initial text of the input field, paths lists the files for completion.
func newFrontend(a *app.App, plainFlag bool, environ []string, draft string, paths func(context.Context) []string) frontend {
	dumb := os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == ""
	if !plainFlag && !dumb && os.Getenv("MINI_PLAIN") == "" {
		if f, ok := newScreenFrontend(a, environ, draft, paths); ok {
			return f
		}
	}
	c := plain.Config{Out: a.Err}
	if m, ok := a.Err.(*cmdutil.Messages); ok && ui.TerminalWidth(m.File()) > 0 {
		c.Width = func() int { return ui.TerminalWidth(m.File()) }
	}
	if f, ok := a.In.(*os.File); ok && a.Interactive {
		c.Keyboard = plain.NewKeyboard(f, a.Err)
	}
	return plain.New(c)
}

// taskHistory returns the history of tasks in the user's state folder, which all sessions share. If
// it is unreadable, taskHistory prints a warning and returns an empty history.
func taskHistory(w io.Writer) *history.History {
	h, err := history.Open(filepath.Join(userdirs.StateDir(), "mini", "history", "tasks.jsonl"))
	if err != nil {
		_, _ = fmt.Fprintln(w, "mini: warning:", cmdutil.Sanitize(err.Error()))
		return &history.History{}
	}
	return h
}

// screenFrontend is the full-screen frontend with the history of tasks.
type screenFrontend struct {
	*rich.Frontend
	messages *cmdutil.Messages // shown by the frontend while it is open
}

// newScreenFrontend opens the full-screen frontend; ok is false if the terminal does not
// support it. environ is the environment of pagers, paths lists the files for completion.
func newScreenFrontend(a *app.App, environ []string, draft string, paths func(context.Context) []string) (f screenFrontend, ok bool) {
	m, ok := a.Err.(*cmdutil.Messages)
	if !ok || m.File() == nil || !a.Interactive || !terminal.IsForeground(m.File()) {
		return f, false
	}
	h := taskHistory(a.Err)
	f = screenFrontend{messages: m, Frontend: rich.Start(rich.Config{
		Terminal: m.File(), Environ: environ, Draft: draft, History: h.Entries(), SaveInput: func(text string) { _ = h.Add(text) }, Paths: paths, // best effort
	})}
	m.Divert(func(line string) { f.ShowNotice(chat.Notice{Text: line}) }, false)
	return f, true
}

// Close restores the terminal.
func (f screenFrontend) Close() {
	err := f.Frontend.Close()
	f.messages.Divert(nil, false)
	if err != nil {
		_, _ = fmt.Fprintln(f.messages, "mini:", cmdutil.Sanitize(err.Error()))
	}
}
