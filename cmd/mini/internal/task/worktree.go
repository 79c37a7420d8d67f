package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/worktree/undo"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/task/sessions"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
)

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
	case errors.Is(t.snapshotErr, chat.ErrNoSnapshot): // said before
		return stored.RemoveSnapshot()
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), stored.RemoveSnapshot())
	}
	_, werr := fmt.Fprintln(w, "mini: warning: changes of the files cannot be shown or undone:", cmdutil.Sanitize(err.Error()))
	return errors.Join(werr, stored.RemoveSnapshot())
}

// snapshotError says why a folder cannot be stored, as a chat.ErrNoSnapshot. It returns other errors
// unchanged.
func snapshotError(err error) error {
	var reason string
	switch {
	case errors.Is(err, undo.ErrGitNotFound):
		reason = "git is not installed"
	case errors.Is(err, undo.ErrTooLarge):
		_, size, _ := strings.Cut(err.Error(), undo.ErrTooLarge.Error()+": it ")
		reason = "the folder " + size + " and is not in a git repository"
	case errors.Is(err, undo.ErrNoRepository):
		reason = "the git repository has no files here"
	default:
		return err
	}
	return noSnapshotError(reason)
}

// noSnapshotError is a chat.ErrNoSnapshot with its reason as the text.
type noSnapshotError string

func (e noSnapshotError) Error() string { return string(e) }

// Is reports that a noSnapshotError is a chat.ErrNoSnapshot.
func (noSnapshotError) Is(target error) bool { return target == chat.ErrNoSnapshot }

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
	return t.changes(d), err
}

// changes returns a diff in the form of the chat.
func (t *worktree) changes(d undo.Diff) chat.Changes {
	c := chat.Changes{
		Patch: cmp.Or(string(d.Patch), d.Summary), Summary: d.Summary, Count: d.Count, TreeID: d.TreeID, SinceName: t.since,
	}
	for _, f := range d.Files {
		c.Files = append(c.Files, chat.FileChange{
			ChangedFile: events.ChangedFile{Name: f.Name, Added: f.Added, Removed: f.Removed}, IsNew: f.Status == 'A',
		})
	}
	return c
}

// Undo implements chat.Snapshot.
func (t *worktree) Undo(ctx context.Context, seen chat.Changes) (string, error) {
	if t.snapshot == nil {
		return "", chat.ErrNoSnapshot
	}
	return undoneText(t.snapshot.Restore(ctx, seen.TreeID))
}

// RecordStep implements chat.Snapshot. Without a snapshot there are no steps.
func (t *worktree) RecordStep(ctx context.Context, step int) (chat.Changes, error) {
	if t.snapshot == nil {
		return chat.Changes{}, nil
	}
	d, err := t.snapshot.RecordStep(ctx, step)
	c := t.changes(d)
	c.Step = step
	return c, err
}

// SkipChanges implements chat.Snapshot.
func (t *worktree) SkipChanges(ctx context.Context) error {
	if t.snapshot == nil {
		return nil
	}
	return t.snapshot.SkipChanges(ctx)
}

// LastStep implements chat.Snapshot.
func (t *worktree) LastStep(ctx context.Context) (chat.Changes, error) {
	if t.snapshot == nil {
		return chat.Changes{}, nil
	}
	number, d, err := t.snapshot.LastStep(ctx)
	c := t.changes(d)
	c.Step = number
	return c, err
}

// UndoStep implements chat.Snapshot.
func (t *worktree) UndoStep(ctx context.Context) (string, error) {
	if t.snapshot == nil {
		return "", chat.ErrNoSnapshot
	}
	return undoneText(t.snapshot.UndoStep(ctx))
}

// undoneText describes the result of an undo.
func undoneText(result undo.RestoreResult, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Undone: %d put back, %d removed.", len(result.Restored), len(result.Removed))
	if n := len(result.Skipped); n > 0 {
		text += fmt.Sprintf(" %d changed since, and stay.", n)
	}
	return text, nil
}
