package docker

import (
	"context"
	"errors"
	"io"

	"github.com/minibench/mini/env"
)

var _ env.Files = (*Container)(nil)

// Put carries files in; see env.Files. When the sandbox is lost the error is as
// in Execute.
func (c *Container) Put(ctx context.Context, dir string, tree io.Reader) error {
	return c.carried(ctx, c.client.Put(ctx, dir, tree))
}

// Get carries files out; see env.Files. When the sandbox is lost the error is as
// in Execute.
func (c *Container) Get(ctx context.Context, path string, tree io.Writer) error {
	return c.carried(ctx, c.client.Get(ctx, path, tree))
}

// carried tells a lost sandbox from a transfer that failed.
func (c *Container) carried(ctx context.Context, err error) error {
	over := c.client.Err()
	switch {
	case err == nil || over == nil:
		return err
	case errors.Is(over, env.ErrClosed):
		return errors.Join(cause(ctx), env.ErrClosed)
	}
	return errors.Join(cause(ctx), c.bury(ctx, over))
}
