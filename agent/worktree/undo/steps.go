package undo

import (
	"context"
	"errors"
	"fmt"

	"github.com/minibench/mini/env/helper/repository"
)

// step is a step of the agent that changed files. Before and After are trees.
type step struct {
	Number int    `json:"number"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// RecordStep returns the changes since the last call of RecordStep or SkipChanges, and records
// them as a step with a number. A repository without changes costs two runs of git, which look at
// the times of the files.
func (s *Snapshot) RecordStep(ctx context.Context, number int) (Diff, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, stop := repository.Watch(ctx, s.meta.Top)
	defer stop()
	d, err := s.recordStep(ctx, number)
	if err != nil {
		return Diff{}, fmt.Errorf("record step: %w", err)
	}
	return d, nil
}

func (s *Snapshot) recordStep(ctx context.Context, number int) (Diff, error) {
	tree, err := s.currentTree(ctx)
	if err != nil {
		return Diff{}, err
	}
	before := s.last
	s.last = tree
	if before == "" || before == tree { // unknown: the snapshot is that of an earlier session
		return Diff{TreeID: tree}, nil
	}
	s.meta.Steps = append(s.meta.Steps, step{number, before, tree})
	if err := s.saveMetadata(); err != nil {
		return Diff{}, err
	}
	return s.diff(ctx, before, tree)
}

// SkipChanges makes the present files the beginning of the next step: what has changed since the
// last call of RecordStep or SkipChanges belongs to the user, and to no step.
func (s *Snapshot) SkipChanges(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, stop := repository.Watch(ctx, s.meta.Top)
	defer stop()
	tree, err := s.currentTree(ctx)
	if err != nil {
		return fmt.Errorf("skip changes: %w", err)
	}
	s.last = tree
	return nil
}

// LastStep returns the number and the changes of the last step that is not taken back. Without one
// there are no changes.
func (s *Snapshot) LastStep(ctx context.Context) (number int, d Diff, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.meta.Steps) == 0 {
		return 0, Diff{}, nil
	}
	ctx, stop := repository.Watch(ctx, s.meta.Top)
	defer stop()
	last := s.meta.Steps[len(s.meta.Steps)-1]
	if d, err = s.diff(ctx, last.Before, last.After); err != nil {
		return 0, Diff{}, fmt.Errorf("take diff of step: %w", err)
	}
	return last.Number, d, nil
}

// UndoStep makes the files that the last step changed what they were before it, except those that
// have changed since. The step before it is then the last one. If there is none, UndoStep returns
// an error. The error is as that of Restore.
func (s *Snapshot) UndoStep(ctx context.Context) (RestoreResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, stop := repository.Watch(ctx, s.meta.Top)
	defer stop()
	result, err := s.undoStep(ctx)
	if err != nil {
		return result, fmt.Errorf("undo step: %w", err)
	}
	return result, nil
}

func (s *Snapshot) undoStep(ctx context.Context) (RestoreResult, error) {
	if len(s.meta.Steps) == 0 {
		return RestoreResult{}, errors.New("no step has changed files")
	}
	last := s.meta.Steps[len(s.meta.Steps)-1]
	current, err := s.currentTree(ctx)
	if err != nil {
		return RestoreResult{}, err
	}
	result, err := s.revert(ctx, last.Before, last.After, last.After, current)
	if err != nil {
		return result, err
	}
	if s.last, err = s.currentTree(ctx); err != nil {
		return result, err
	}
	s.meta.Steps = s.meta.Steps[:len(s.meta.Steps)-1]
	return result, s.saveMetadata()
}
