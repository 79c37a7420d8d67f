package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/ask"
)

// ErrNoTree says that there is nothing to compare the files with.
var ErrNoTree = errors.New("that takes a git repository on this machine")

// diffTime bounds how long the end of a session looks for changes.
const diffTime = time.Minute

// Keep is the end of a session: it shows how much has changed and, after work
// that was handed in, asks whether to keep it. decided says that the person has
// answered.
func (s *Session) Keep(ctx context.Context, handedIn bool) (decided bool) {
	if s.Tree == nil {
		return false
	}
	look, done := context.WithTimeout(context.WithoutCancel(ctx), diffTime)
	defer done()
	changes, err := s.Tree.Diff(look)
	switch {
	case errors.Is(err, ErrNoTree):
		return false
	case err != nil:
		s.complain("The changes cannot be shown: %v", err)
		return false
	case changes.Empty():
		return false
	case !handedIn || s.Alone || !s.ConfirmExit || ctx.Err() != nil || s.Leaving():
		s.tell("The changes are kept: %s. /undo in mini --continue takes them back.", changes.Summary)
		return false
	}
	s.Front.Tell(Note{Text: changes.Patch, Diff: true})
	q := Question{
		Kind: AskKeep, Text: ask.Marked(fmt.Sprintf("Keep the changes (%s)?", changes.Summary), true),
		Hint: "Enter keeps, n undoes, d shows them again", Answers: []string{"yes", "no", "diff"},
	}
	for {
		text, err := s.insist(ctx, q)
		if err != nil {
			s.tell("The changes are kept. /undo in mini --continue takes them back.")
			return false
		}
		keep, ok := ask.YesNo(text, true)
		switch {
		case ok && !keep, means(text, "undo"):
			return s.undone(ctx, changes)
		case ok, means(text, "keep"):
			s.tell("The changes are kept.")
			return true
		case means(text, "diff"):
			s.Front.Tell(Note{Text: changes.Patch, Diff: true})
		default:
			s.complain("%.40q is none of y, n and d.", text)
		}
	}
}

// changes looks at the files, and says what keeps it from showing any.
func (s *Session) changes(ctx context.Context) (Changes, bool) {
	var changes Changes
	err := ErrNoTree
	if s.Tree != nil {
		changes, err = s.Tree.Diff(ctx)
	}
	switch {
	case err != nil:
		s.complain("The changes cannot be shown: %v", err)
	case changes.Empty():
		s.tell("Nothing has changed since %s.", cmp.Or(changes.Since, "the session began"))
	default:
		return changes, true
	}
	return Changes{}, false
}

// undone takes changes back; it says whether that went well.
func (s *Session) undone(ctx context.Context, seen Changes) bool {
	text, err := s.Tree.Undo(ctx, seen)
	if err != nil {
		s.complain("The changes were not all taken back: %v", err)
		return false
	}
	s.tell("%s", text)
	return true
}
