//go:build full

package docker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/internal/require"
)

// Engines take seconds to measure their images, which both tests need.

func TestPrepareOverBudget(t *testing.T) {
	failedPreparation{note: rand.Text(), budget: 1, runs: 1, notice: "more than the budget"}.test(t)
}

// TestPrunePrepared: Prune keeps a prepared image whose base is needed, and otherwise
// removes it. It is created again when it is needed.
func TestPrunePrepared(t *testing.T) {
	note, name, done := rand.Text(), dockertest.Small(t), 0
	e, _ := newPreparingEngine(t, 0, note)
	c := docker.Config{Image: name, Prepare: &docker.Preparation{
		Key: rand.Text(),
		Do: func(ctx context.Context, sandbox env.Environment) (string, error) {
			done++
			res, err := sandbox.Execute(ctx, env.Command{Script: "echo x > /made"})
			return note, errors.Join(err, exitError(res))
		},
	}}
	require.NoError(t, start(t, e, c).Close(t.Context()))
	p, err := e.Images().Prune(t.Context(), []imagestore.Request{{Ref: name}}, false)
	if err != nil || len(p.Images) != 1 || p.Images[0].Removed || p.Images[0].Base != name {
		t.Errorf("%v, %+v", err, p)
	}
	p, err = e.Images().Prune(t.Context(), nil, false)
	if err != nil || len(p.Images) != 1 || !p.Images[0].Removed || len(listPrepared(t, note)) != 0 {
		t.Errorf("%v, %+v", err, p)
	}
	sandbox := start(t, e, c)
	if err := sandbox.Close(t.Context()); err != nil || done != 2 || sandbox.Info().Prepared == nil {
		t.Errorf("the image was not prepared again: %+v, %v", sandbox.Info(), err)
	}
	// The image is also removed by a mini that did not record it, once that has used it.
	other, _ := newPreparingEngine(t, 0, note)
	if err := start(t, other, c).Close(t.Context()); err != nil || done != 2 {
		t.Fatal(err)
	}
	if p, err = other.Images().Prune(t.Context(), nil, true); err != nil || len(p.Images) != 1 || p.Images[0].Base != name {
		t.Errorf("%v, %+v", err, p)
	}
}
