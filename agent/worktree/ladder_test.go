package worktree_test

import (
	"context"
	"testing"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
)

// slow is a sandbox in which git never ends; it notes the limits it was given.
type slow struct {
	env.Environment
	limits []time.Duration
}

func (s *slow) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if s.limits == nil { // the repository is found
		s.limits = []time.Duration{}
		return s.Environment.Execute(ctx, c)
	}
	s.limits = append(s.limits, c.Timeout)
	return env.Result{ExitCode: -1, TimedOut: true}, nil
}

// A try that takes all of its time leaves some to each of the smaller ones.
func TestEachRungHasItsTime(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, seed)
	box := &slow{Environment: sandbox(t, local.Config{Dir: dir})}
	tree, err := worktree.Open(t.Context(), box, worktree.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := tree.Diff(ctx); err == nil {
		t.Error("there is a diff")
	}
	if len(box.limits) != 4 {
		t.Fatalf("%d tries, want 4", len(box.limits))
	}
	for _, limit := range box.limits {
		if limit > time.Minute || limit < 30*time.Second {
			t.Errorf("a try may take %v of the two minutes", limit)
		}
	}
}
