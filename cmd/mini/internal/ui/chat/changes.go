package chat

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/minibench/mini/internal/sanitize"
)

// ErrNoSnapshot means that mini could not record the files at the start of the session.
var ErrNoSnapshot = errors.New("there is no git repository on this machine")

// diffTimeout bounds the diff at the end of a session.
const diffTimeout = time.Minute

// ReportChanges ends a session. Unless the user has ended it at the question of NextTask, it prints
// how to undo the changes. It reports whether the user has ended the session there, and so has
// decided about the changes.
func (s *Session) ReportChanges(ctx context.Context) (decided bool) {
	if s.hasDecided() {
		return true
	}
	switch changes, err := s.finalChanges(ctx); {
	case err != nil:
		s.notifyError("The changes cannot be shown or undone: %v", err)
	case changes.IsEmpty():
	case s.isNew():
		s.notify("The changes are kept: %s.", changes.Summary)
	default:
		s.notify("The changes are kept: %s. To undo them, run mini --continue and enter /undo.", changes.Summary)
	}
	return false
}

// WarnGitFiles names git's own files that have changed. They are not among the changes, and the
// user's next git command may run what they name.
func (s *Session) WarnGitFiles() {
	if s.ChangedGit == nil {
		return
	}
	names := s.ChangedGit()
	if len(names) == 0 {
		return
	}
	for i, name := range names {
		names[i] = sanitize.Line(name)
	}
	s.notifyError("Files of git itself have changed: %s. They can name programs that your next git command or editor runs. "+
		"Check them before you use git here; /undo does not restore them.", strings.Join(names, ", "))
}

// finalChanges returns the changes for the end of a session, also after ctx has ended. Without a
// snapshot there are none.
func (s *Session) finalChanges(ctx context.Context) (Changes, error) {
	if s.Snapshot == nil {
		return Changes{}, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diffTimeout)
	defer cancel()
	changes, err := s.Snapshot.Diff(ctx)
	if errors.Is(err, ErrNoSnapshot) {
		return Changes{}, nil
	}
	return changes, err
}

// currentChanges returns the changes of the session. If there are none or they are unknown, it
// tells the user and returns false.
func (s *Session) currentChanges(ctx context.Context) (Changes, bool) {
	var changes Changes
	err := ErrNoSnapshot
	if s.Snapshot != nil {
		changes, err = s.Snapshot.Diff(ctx)
	}
	switch {
	case err != nil:
		s.notifyError("The changes cannot be shown or undone: %v", err)
	case changes.IsEmpty():
		s.notify("Nothing has changed since %s; ignored files and nested repositories are not covered.", cmp.Or(changes.SinceName, "the session began"))
	default:
		return changes, true
	}
	return Changes{}, false
}

// undoChanges undoes the changes that the user has seen. It reports whether that succeeded.
func (s *Session) undoChanges(ctx context.Context, seen Changes) bool {
	text, err := s.Snapshot.Undo(ctx, seen)
	if err != nil {
		s.notifyError("Not all changes were undone: %v", err)
		return false
	}
	s.notify("%s", text)
	return true
}
