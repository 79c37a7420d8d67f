package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/chat/history"
	plain "github.com/minibench/mini/cmd/mini/internal/chat/lines"
	"github.com/minibench/mini/cmd/mini/internal/sessions"
	"github.com/minibench/mini/cmd/mini/internal/undo"
)

// front is a chat.Front that is opened and closed.
type front interface {
	chat.Front
	// Listen has the front take what is typed between questions.
	Listen(c chat.Controls)
	// Ended says that it has shown how the attempt ended, which nothing else
	// then repeats.
	Ended() bool
	// Close gives the terminal back.
	Close()
}

// frontOf picks how a session looks: by lines, where --plain or MINI_PLAIN ask
// for that, the terminal can do no more, or there is none.
func frontOf(s Streams, asked bool, environ []string) front {
	dumb := os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == ""
	if !asked && !dumb && os.Getenv("MINI_PLAIN") == "" {
		if f, ok := newScreenFront(s, environ); ok {
			return f
		}
	}
	c := plain.Config{Out: s.Err, Colour: s.Terminal && !dumb && os.Getenv("NO_COLOR") == ""}
	if f, ok := s.In.(*os.File); ok && s.Terminal {
		c.Keyboard = plain.NewKeyboard(f, s.Err)
	}
	return plain.New(c)
}

// taskHistory is that of the user's state folder, shared by all sessions. One that
// cannot be read is a new one, which no session need fail for.
func taskHistory(w io.Writer) *history.History {
	h, err := history.Open(filepath.Join(stateDir(), "mini", "history", "tasks.jsonl"))
	if err != nil {
		_, _ = fmt.Fprintln(w, "mini: warning:", lines(err.Error())) // only for people
		return &history.History{}
	}
	return h
}

// tree is the user's files for a session, compared with a snapshot of them.
type tree struct {
	dir      string
	hidden   []string // variables that git does not get
	since    string   // the event that changes are counted from
	snapshot *undo.Snapshot
	// missing is why there is no snapshot, once one was to be taken.
	missing error
}

// open finds the snapshot that an earlier part of the session has taken. Where
// there is none any more, since the changes were kept, take makes a new one.
func (t *tree) open(held *sessions.Held) {
	t.since = "the session was continued"
	if s, err := undo.Open(held.Files(), t.hidden...); err == nil {
		t.since, t.snapshot = "", s
	}
}

// take remembers the files, unless open has found what they were.
func (t *tree) take(ctx context.Context, w io.Writer, held *sessions.Held) error {
	if t.snapshot != nil {
		return nil
	}
	s, err := undo.Take(ctx, t.dir, held.Files(), t.hidden...)
	if err == nil {
		t.snapshot = s
		return nil
	}
	t.missing = untaken(err)
	switch {
	case errors.Is(t.missing, chat.ErrNoTree):
		return held.Drop()
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), held.Drop())
	}
	_, werr := fmt.Fprintln(w, "mini: warning: changes of the files cannot be shown or undone:", lines(err.Error()))
	return errors.Join(werr, held.Drop())
}

// untaken says why there is no snapshot.
func untaken(err error) error {
	if errors.Is(err, undo.ErrNoGit) || errors.Is(err, undo.ErrNoRepository) {
		return chat.ErrNoTree
	}
	return err
}

// Diff implements chat.Tree. Before take, nothing has changed.
func (t *tree) Diff(ctx context.Context) (chat.Changes, error) {
	if t.snapshot == nil {
		if t.missing != nil {
			return chat.Changes{}, t.missing
		}
		return chat.Changes{Since: t.since}, untaken(undo.Possible(ctx, t.dir, t.hidden...))
	}
	d, err := t.snapshot.Diff(ctx)
	if err != nil {
		return chat.Changes{}, err
	}
	return chat.Changes{Patch: cmp.Or(string(d.Patch), d.Summary), Summary: d.Summary, Tree: d.Tree, Since: t.since}, nil
}

// Undo implements chat.Tree.
func (t *tree) Undo(ctx context.Context, seen chat.Changes) (string, error) {
	if t.snapshot == nil {
		return "", chat.ErrNoTree
	}
	done, err := t.snapshot.Restore(ctx, seen.Tree)
	if err = errors.Join(append([]error{err}, done.Failed...)...); err != nil {
		return "", err
	}
	text := fmt.Sprintf("Undone: %d put back, %d removed.", len(done.Back), len(done.Removed))
	if n := len(done.Kept); n > 0 {
		text += fmt.Sprintf(" %d changed since, and stay.", n)
	}
	return text, nil
}
