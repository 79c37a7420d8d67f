package bubblewrap_test

import (
	"context"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
)

// runOwner runs the test binary as the process to be killed by TestKilledOwner.
func runOwner() {
	childtest.RunOwner(func(ctx context.Context, p *child.Program, dir string) (env.Environment, error) {
		host, err := bubblewrap.Open(ctx, p)
		if err != nil {
			return nil, err
		}
		return host.Start(ctx, bubblewrap.Config{Dir: dir})
	})
}

// TestKilledOwner: when mini is killed, its sandboxes are killed, too.
func TestKilledOwner(t *testing.T) {
	requireBwrap(t)
	childtest.RunOrphanTest(t)
}
