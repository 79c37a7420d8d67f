package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
)

// ErrNoSnapshot means that mini could not record the files at the start of the session.
var ErrNoSnapshot = errors.New("it needs a git repository on this machine")

// diffTimeout bounds the diff at the end of a session.
const diffTimeout = time.Minute

// ConfirmChanges ends a session. If there are changes, it shows them after a submission and asks
// whether to keep or undo them; without ConfirmExit, a submission or a user to ask, it prints how
// to undo them. It reports whether the user chose to keep them or has undone all of them.
func (s *Session) ConfirmChanges(ctx context.Context, submitted bool) (decided bool) {
	if s.Snapshot == nil {
		return false
	}
	diffCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diffTimeout)
	defer cancel()
	changes, err := s.Snapshot.Diff(diffCtx)
	switch {
	case errors.Is(err, ErrNoSnapshot):
		return false
	case err != nil:
		s.notifyError("The changes cannot be shown: %v", err)
		return false
	case changes.IsEmpty():
		return false
	case !submitted || s.NonInteractive || !s.ConfirmExit || ctx.Err() != nil || s.HasQuit():
		s.notify("The changes are kept: %s. To undo them, run mini --continue and enter /undo.", changes.Summary)
		return false
	}
	s.Frontend.ShowNotice(Notice{Text: changes.Patch, IsDiff: true})
	q := Question{
		Kind: AskKeepChanges, Text: ask.YesNoPrompt(fmt.Sprintf("Keep the changes (%s)?", changes.Summary), true),
		Hint: "Enter keeps them, n undoes them, d shows them again", Answers: []string{"yes", "no", "diff"},
	}
	for {
		text, err := s.askOrQuit(ctx, q)
		if err != nil {
			s.notify("The changes are kept. To undo them, run mini --continue and enter /undo.")
			return false
		}
		keep, ok := ask.ParseYesNo(text, true)
		switch {
		case ok && !keep, isAbbreviation(text, "undo"):
			return s.undoChanges(ctx, changes)
		case ok, isAbbreviation(text, "keep"):
			s.notify("The changes are kept.")
			return true
		case isAbbreviation(text, "diff"):
			s.Frontend.ShowNotice(Notice{Text: changes.Patch, IsDiff: true})
		default:
			s.notifyError("%.40q is not y, n or d.", text)
		}
	}
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
		s.notifyError("The changes cannot be shown: %v", err)
	case changes.IsEmpty():
		s.notify("Nothing has changed since %s.", cmp.Or(changes.SinceName, "the session began"))
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
