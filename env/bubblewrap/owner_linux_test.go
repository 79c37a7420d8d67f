package bubblewrap_test

import (
	"context"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
)

// owner is this binary as a program that is going to be killed.
func owner() {
	childtest.Owner(func(ctx context.Context, p *child.Program, dir string) (env.Environment, error) {
		m, err := bubblewrap.Open(ctx, p)
		if err != nil {
			return nil, err
		}
		return m.Start(ctx, bubblewrap.Config{Dir: dir})
	})
}

// TestKilledOwner: when a program is killed, its sandboxes go with it.
func TestKilledOwner(t *testing.T) {
	requireBwrap(t)
	childtest.Orphans(t)
}
