package chat

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/internal/sanitize"
)

// ErrNoSnapshot means that mini could not record the files at the start of the session.
var ErrNoSnapshot = errors.New("the files of the start were not kept")

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

// maxStepTime bounds the time for the changes of a step, during which the agent waits.
const maxStepTime = 5 * time.Second

// recordStep shows the changes since the last question or model call. It is called when the
// commands of a step have ended, and before each question: what changes while a question is open
// counts as the user's. after is the number of the event that the changes follow. If that fails or
// takes too long, the steps are not recorded from then on.
func (s *Session) recordStep(ctx context.Context, after uint64) {
	s.trackFiles(ctx, func(ctx context.Context) error {
		s.mu.Lock()
		step := s.step
		s.mu.Unlock()
		changes, err := s.Snapshot.RecordStep(ctx, step)
		if err == nil && !changes.IsEmpty() {
			event := changes.event()
			s.mu.Lock()
			s.unshownChanges = append(s.unshownChanges, events.Envelope{Seq: after, Time: time.Now(), Event: event})
			s.mu.Unlock()
			s.Events.Publish(event)
		}
		return err
	})
}

// startRecordStep calls recordStep while the model is called: in large repositories that takes a
// moment. What the reply says is shown and done after the end.
func (s *Session) startRecordStep(ctx context.Context) {
	s.WaitForStep(ctx)
	done := make(chan struct{})
	s.mu.Lock()
	end := s.Events.LastSeq()
	s.stepRecorded, s.stepEnd = done, end
	s.mu.Unlock()
	s.background.Go(func() {
		defer close(done)
		s.recordStep(ctx, end)
	})
}

// WaitForStep waits until the changes of the last step are found, or ctx ends.
func (s *Session) WaitForStep(ctx context.Context) {
	s.mu.Lock()
	done := s.stepRecorded
	s.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// skipChanges leaves the changes that the user has made at a question out of the next step.
func (s *Session) skipChanges(ctx context.Context) {
	s.trackFiles(ctx, func(ctx context.Context) error { return s.Snapshot.SkipChanges(ctx) })
}

func (s *Session) trackFiles(ctx context.Context, track func(context.Context) error) {
	s.mu.Lock()
	off := s.noSteps || s.Snapshot == nil
	s.mu.Unlock()
	if off || ctx.Err() != nil {
		return
	}
	limited, cancel := context.WithTimeoutCause(ctx, maxStepTime, errSlowSnapshot)
	defer cancel()
	err := track(limited)
	if err == nil || ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	s.noSteps = true
	s.mu.Unlock()
	s.notifyError("The changes of each step are not shown from now on: %v. /d shows all changes.", err)
}

var errSlowSnapshot = errors.New("it takes too long here")

// undoChanges calls undo, which returns a summary. It reports whether that succeeded.
func (s *Session) undoChanges(ctx context.Context, undo func(context.Context) (string, error)) bool {
	text, err := undo(ctx)
	if err != nil {
		s.notifyError("Not all changes were undone: %v", err)
		return false
	}
	s.notify("%s", text)
	return true
}
