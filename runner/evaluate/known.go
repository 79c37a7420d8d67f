package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/runner/verdicts"
)

// Known tells what an evaluation would not have to run, for plans: the class
// of the verdict that a task has in a folder or in the cache, and "" where it
// has none. Nothing is written, and the folder need not be held, nor there. Of
// Config it needs what Begin does, but for Folder and Log; without Sandboxes
// images are taken to be those of the time of the verdict.
//
// The error is about the folder, or wraps grade.ErrName.
func (c Config) Known(dir string) (func(ctx context.Context, t Task) (verdicts.Class, error), error) {
	c = c.withDefaults()
	if _, err := grade.NewRun(dir, c.RunID); err != nil {
		return nil, err
	}
	root, err := rootdir.Open(dir) // it is closed when it is garbage, as all that is returned
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read verdicts: %w", err)
	}
	s := newStore(c, dir, root)
	if _, err := s.read(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, t Task) (verdicts.Class, error) {
		p, err := newPlan(c, t)
		if err != nil {
			return "", err
		}
		run, err := grade.NewRun(dir, c.runID(t))
		if err != nil {
			return "", err
		}
		where, err := s.paths(run, t.Model, t.Instance.ID)
		if err != nil {
			return "", fmt.Errorf("evaluate %s: %w", t.Instance.ID, err)
		}
		if t.empty() {
			return verdicts.Empty, nil
		}
		e := &Evaluator{config: c, store: s}
		basis, own, holds := e.held(ctx, &job{Task: t, plan: p, run: run, paths: where})
		if holds {
			return own.Class, nil
		}
		return s.class(basis.Key), nil
	}, nil
}
