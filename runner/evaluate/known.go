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

// Known tells what an evaluation would not have to run, for plans: for each task
// the class of the verdict that it has in a folder or in the cache, and "" where
// it has none. Nothing is written, and the folder need not be held, nor there. Of
// Config it needs what Begin does, but for Folder and Log; without Sandboxes
// images are taken to be those of the time of the verdict.
//
// The error is about the folder, or wraps grade.ErrName.
func (c Config) Known(ctx context.Context, dir string, tasks []Task) ([]verdicts.Class, error) {
	c = c.withDefaults()
	if _, err := grade.NewRun(dir, c.RunID); err != nil {
		return nil, err
	}
	root, err := rootdir.Open(dir)
	switch {
	case err == nil:
		defer root.Close() //nolint:errcheck // only read
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read verdicts: %w", err)
	}
	s := newStore(c, dir, root)
	if _, err := s.read(); err != nil {
		return nil, err
	}
	e := &Evaluator{config: c, store: s}
	var classes []verdicts.Class
	for _, t := range tasks {
		class, err := e.known(ctx, dir, t)
		if err != nil {
			return nil, err
		}
		classes = append(classes, class)
	}
	return classes, nil
}

func (e *Evaluator) known(ctx context.Context, dir string, t Task) (verdicts.Class, error) {
	p, err := planToRun(e.config, t)
	if err != nil {
		return "", err
	}
	run, err := grade.NewRun(dir, e.config.runID(t))
	if err != nil {
		return "", err
	}
	where, err := e.store.paths(run, t.Model, t.Instance.ID)
	if err != nil {
		return "", fmt.Errorf("evaluate %s: %w", t.Instance.ID, err)
	}
	if t.empty() {
		return verdicts.Empty, nil
	}
	basis, own, holds := e.held(ctx, &job{Task: t, plan: p, run: run, paths: where})
	if holds {
		return own.Class, nil
	}
	return e.store.class(basis.Key), nil
}
