package docker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// Container is a sandbox that is up. It implements env.Environment.
type Container struct {
	engine *Engine
	name   string
	born   time.Time
	stream *attachment
	death  *death
	client *helper.Client
	info   env.Info
	// releaseImage says that the image is not needed here any more.
	releaseImage func()

	closing sync.Mutex
	closed  bool
	mu      sync.Mutex
	fate    error // why it was lost, once it is
}

var _ env.Environment = (*Container)(nil)

// Name is the container's name in the engine.
func (c *Container) Name() string { return c.name }

// Info describes the sandbox from within.
func (c *Container) Info() env.Info { return c.info }

// Execute runs one command; see env.Environment. When the sandbox is lost the
// error is an *env.Error, the container is killed if it still lives, and every
// later call returns the same error.
func (c *Container) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	res, err := c.client.Execute(ctx, cmd)
	over := c.client.Err()
	switch {
	case err == nil:
		return res, nil
	case over == nil: // ctx ended; the sandbox is well
		return res, fmt.Errorf("execute command: %w", err)
	case errors.Is(over, env.ErrClosed):
		return res, errors.Join(cause(ctx), env.ErrClosed)
	}
	return res, errors.Join(cause(ctx), c.bury(ctx, over))
}

// cause is nil unless ctx has ended.
func cause(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// bury finds out, once, why the sandbox was lost and removes what is left.
func (c *Container) bury(ctx context.Context, why error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fate == nil {
		c.fate = c.lost(ctx, "execute command in "+c.name, why)
		// Close repeats the removal and reports its failure.
		_ = c.engine.remove(ctx, c.name)
	}
	return c.fate
}

// Close kills every process in the container and removes it. It returns when
// the container is gone, also when ctx has ended; a minute bounds it. A second
// call waits for the first and returns nil.
func (c *Container) Close(ctx context.Context) error {
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.releaseImage != nil {
		defer c.releaseImage()
	}
	return c.release(ctx)
}

// release gives everything back, of a container that is half made too.
func (c *Container) release(ctx context.Context) error {
	if c.client != nil {
		_ = c.client.Close() // never fails; the end of stdin ends the helper
	}
	if c.stream != nil {
		_ = c.stream.Close() // a second time: nothing can be done about it
		c.stream.wait()
	}
	err := c.engine.remove(ctx, c.name)
	if c.death != nil {
		c.death.stop()
	}
	if err != nil {
		return fmt.Errorf("close sandbox: %w", err)
	}
	return nil
}
