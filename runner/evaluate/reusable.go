package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// FindReusable returns, for each task, the class of the verdict that an
// evaluation would reuse from a folder or the cache, or "" if it would run the
// tests. The class of an empty patch is verdicts.Empty. FindReusable writes
// nothing; the folder need not be locked and may be missing. It uses the same
// fields of Config as Start, except Folder and Log. If Sandboxes is nil,
// FindReusable assumes that images have not changed since the verdicts.
//
// FindReusable returns an error if the folder cannot be read or a row cannot be
// evaluated, and one that wraps grade.ErrInvalidName for an invalid name.
func (c Config) FindReusable(ctx context.Context, dir string, tasks []Task) ([]verdicts.Class, error) {
	c = c.withDefaults()
	if _, err := grade.NewLayout(dir, c.RunID); err != nil {
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
	if _, err := s.load(); err != nil {
		return nil, err
	}
	e := &Evaluator{config: c, store: s}
	var classes []verdicts.Class
	for _, t := range tasks {
		class, err := e.reusableClass(ctx, dir, t)
		if err != nil {
			return nil, err
		}
		classes = append(classes, class)
	}
	return classes, nil
}

func (e *Evaluator) reusableClass(ctx context.Context, dir string, t Task) (verdicts.Class, error) {
	p, err := newRunnablePlan(e.config, t)
	if err != nil {
		return "", err
	}
	layout, err := grade.NewLayout(dir, e.config.runID(t))
	if err != nil {
		return "", err
	}
	files, err := e.store.pathsFor(layout, t.Model, t.Instance.ID)
	if err != nil {
		return "", fmt.Errorf("evaluate %s: %w", t.Instance.ID, err)
	}
	if t.isEmpty() {
		return verdicts.Empty, nil
	}
	basis, record, valid := e.findOwnRecord(ctx, &job{Task: t, plan: p, layout: layout, paths: files})
	if valid {
		return record.Class, nil
	}
	return e.store.class(basis.Key), nil
}
