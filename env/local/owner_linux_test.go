package local_test

import (
	"context"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
)

// runOwner runs the test binary as the process to be killed by TestKilledOwner.
func runOwner() {
	childtest.RunOwner(func(ctx context.Context, p *child.Program, dir string) (env.Environment, error) {
		return local.New(ctx, local.Config{Dir: dir, Helper: p})
	})
}

// TestKilledOwner: when mini is killed, its commands are killed, too.
func TestKilledOwner(t *testing.T) {
	t.Parallel()
	childtest.RunOrphanTest(t)
}
