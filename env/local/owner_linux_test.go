package local_test

import (
	"context"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
)

// owner is this binary as a program that is going to be killed.
func owner() {
	childtest.Owner(func(ctx context.Context, p *child.Program, dir string) (env.Environment, error) {
		return local.New(ctx, local.Config{Dir: dir, Helper: p})
	})
}

// TestKilledOwner: when a program is killed, its commands go with it.
func TestKilledOwner(t *testing.T) { childtest.Orphans(t) }
