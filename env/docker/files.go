package docker

import (
	"context"
	"io"

	"github.com/minibench/mini/env"
)

var _ env.Files = (*Container)(nil)

// Put carries files in; see env.Files. When the sandbox is lost the error is as
// in Execute.
func (c *Container) Put(ctx context.Context, dir string, tree io.Reader) error {
	leave := c.attend(ctx)
	err := c.client.Put(ctx, dir, tree)
	leave()
	return c.carried(ctx, err)
}

// Get carries files out; see env.Files. When the sandbox is lost the error is as
// in Execute.
func (c *Container) Get(ctx context.Context, path string, tree io.Writer) error {
	leave := c.attend(ctx)
	err := c.client.Get(ctx, path, tree)
	leave()
	return c.carried(ctx, err)
}

// carried tells a lost sandbox from a transfer that failed.
func (c *Container) carried(ctx context.Context, err error) error {
	return c.client.Outcome(ctx, err, func(why error) error { return c.bury(ctx, why) })
}
