package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/minibench/mini/agent/worktree/undo"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/task/sessions"
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
	c := plain.Config{Out: a.Err, Colour: a.Interactive && !dumb && os.Getenv("NO_COLOR") == ""}
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

// worktree compares the user's files with a snapshot taken at the start of the session.
type worktree struct {
	dir      string
	hidden   []string // variables removed from the environment of git
	since    string   // event that changes are relative to; "" means the start of the session
	snapshot *undo.Snapshot
	// snapshotErr is the reason why there is no snapshot.
	snapshotErr error
	git         *undo.GitFiles // at the start of the session; nil before
}

// changedGit returns the names of git's own files that have changed since the start of the session.
func (t *worktree) changedGit() []string {
	if t.git == nil {
		return nil
	}
	return t.git.Changed()
}

// openSnapshot opens the snapshot of a resumed session. If the user has kept the changes, the
// snapshot was removed, and takeSnapshot takes a new one; also if the session is older than another
// one, whose changes the snapshot does not separate.
func (t *worktree) openSnapshot(stored *sessions.Session, isOlder bool) {
	t.since = "the session was continued"
	if isOlder {
		return
	}
	if s, err := undo.OpenSnapshot(stored.SnapshotDir(), t.hidden...); err == nil {
		t.since, t.snapshot = "", s
	}
}

// takeSnapshot takes a snapshot of the files unless openSnapshot has opened one. If that fails, it
// prints a warning to w, except for a missing git or repository. It returns an error if ctx is
// canceled, or if it cannot print the warning or remove an incomplete snapshot.
func (t *worktree) takeSnapshot(ctx context.Context, w io.Writer, stored *sessions.Session) error {
	if t.snapshot != nil {
		return nil
	}
	if err := stored.RemoveSnapshot(); err != nil {
		return err
	}
	s, err := undo.TakeSnapshot(ctx, t.dir, stored.SnapshotDir(), t.hidden...)
	if err == nil {
		t.snapshot = s
		return nil
	}
	t.snapshotErr = snapshotError(err)
	switch {
	case errors.Is(t.snapshotErr, chat.ErrNoSnapshot):
		return stored.RemoveSnapshot()
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), stored.RemoveSnapshot())
	}
	_, werr := fmt.Fprintln(w, "mini: warning: changes of the files cannot be shown or undone:", cmdutil.Sanitize(err.Error()))
	return errors.Join(werr, stored.RemoveSnapshot())
}

// snapshotError maps a missing git or repository to chat.ErrNoSnapshot. It returns other errors
// unchanged.
func snapshotError(err error) error {
	if errors.Is(err, undo.ErrGitNotFound) || errors.Is(err, undo.ErrNoRepository) {
		return chat.ErrNoSnapshot
	}
	return err
}

// Diff implements chat.Snapshot. Before takeSnapshot, it returns no changes, or an error if no
// snapshot can be taken.
func (t *worktree) Diff(ctx context.Context) (chat.Changes, error) {
	if t.snapshot == nil {
		if t.snapshotErr != nil {
			return chat.Changes{}, t.snapshotErr
		}
		return chat.Changes{SinceName: t.since}, snapshotError(undo.Check(ctx, t.dir, t.hidden...))
	}
	d, err := t.snapshot.Diff(ctx)
	if err != nil {
		return chat.Changes{}, err
	}
	return chat.Changes{Patch: cmp.Or(string(d.Patch), d.Summary), Summary: d.Summary, Files: d.Files, TreeID: d.TreeID, SinceName: t.since}, nil
}

// Undo implements chat.Snapshot.
func (t *worktree) Undo(ctx context.Context, seen chat.Changes) (string, error) {
	if t.snapshot == nil {
		return "", chat.ErrNoSnapshot
	}
	result, err := t.snapshot.Restore(ctx, seen.TreeID)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Undone: %d put back, %d removed.", len(result.Restored), len(result.Removed))
	if n := len(result.Skipped); n > 0 {
		text += fmt.Sprintf(" %d changed since, and stay.", n)
	}
	return text, nil
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
