package docker

import (
	"context"
	"io"

	"github.com/minibench/mini/env"
)

var _ env.Files = (*Container)(nil)

// Put copies files into the sandbox; see env.Files. If the sandbox is lost, the
// error is the one of Execute.
func (c *Container) Put(ctx context.Context, dir string, tree io.Reader) error {
	stopWatch := c.watchEngine(ctx)
	err := c.client.Put(ctx, dir, tree)
	stopWatch()
	return c.wrapLoss(ctx, err)
}

// Get copies files out of the sandbox; see env.Files. If the sandbox is lost, the
// error is the one of Execute.
func (c *Container) Get(ctx context.Context, path string, tree io.Writer) error {
	stopWatch := c.watchEngine(ctx)
	err := c.client.Get(ctx, path, tree)
	stopWatch()
	return c.wrapLoss(ctx, err)
}

// wrapLoss returns the reason of the loss if the sandbox is lost, else err.
func (c *Container) wrapLoss(ctx context.Context, err error) error {
	return c.client.MapError(ctx, err, func(cause error) error { return c.recordLoss(ctx, cause) })
}
