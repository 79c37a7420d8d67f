package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// Container is a sandbox that is up. It implements env.Environment.
type Container struct {
	engine *Engine
	name   string
	born   time.Time
	stream *attachment
	link   link // what the conversation goes over; nil before there is one
	death  *death
	client *helper.Client
	info   env.Info
	still  stillness
	// noticed says that the pause which goes on was told of; guarded by the
	// engine.
	noticed bool
	// releaseImage says that the image is not needed here any more.
	releaseImage func()

	closing sync.Mutex
	closed  bool
	mu      sync.Mutex
	fate    error          // why it was lost, once it is
	burial  sync.WaitGroup // the removal after that
}

// link is the way to a helper. settle waits, after Close, for what works on it.
type link interface {
	io.ReadWriteCloser
	settle()
}

var _ env.Environment = (*Container)(nil)

// Name is the container's name in the engine.
func (c *Container) Name() string { return c.name }

// Info describes the sandbox from within.
func (c *Container) Info() env.Info { return c.info }

// Execute runs one command; see env.Environment. When the sandbox is lost the
// error is an *env.Error, the removal of what is left of the container has begun
// (Close waits for it), and every later call returns the same error.
func (c *Container) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	cmd.Tools = helper.Inside(cmd.Tools, c.info, c.within)
	res, err := c.execute(ctx, cmd)
	if err == nil && res.OOMKilled > 0 && res.ExitCode != 0 && !c.hasMemory(ctx) {
		return res, c.bury(ctx, c.client.Err())
	}
	return c.judged(ctx, res, err)
}

// within is Execute inside of a command that asks. That one has an eye on the
// engine, and finds out what is left of the memory.
func (c *Container) within(ctx context.Context, inside env.Environment, cmd env.Command) (env.Result, error) {
	res, err := inside.Execute(ctx, cmd)
	return c.judged(ctx, res, err)
}

// judged says of what a command came to what it means.
func (c *Container) judged(ctx context.Context, res env.Result, err error) (env.Result, error) {
	switch {
	case err == nil:
		return res, c.roomLeft(res)
	case c.client.Err() == nil: // ctx ended; the sandbox is well
		return res, fmt.Errorf("execute command: %w", err)
	}
	return res, c.carried(ctx, err)
}

// execute is Execute, with an eye on the engine while the command runs.
func (c *Container) execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	defer c.attend(ctx)()
	return c.client.Execute(ctx, cmd)
}

// attend keeps an eye on the engine, and on pauses of the container, until
// leave is called. An engine that falls silent ends the conversation.
func (c *Container) attend(ctx context.Context) (leave func()) {
	c.still.begin()
	forget := c.engine.pulse.watch(ctx, c.client.Abandon)
	return func() {
		forget()
		c.still.settle()
	}
}

// How it is found out that a container has no memory left for any command.
const (
	memoryProbes    = 2
	memoryProbeTime = 1500 * time.Millisecond
)

// hasMemory is asked after the kernel has killed something for want of memory.
// Pages of memory file systems cannot be taken back: where they fill the
// memory, the shell of every command is killed, that of the one that would
// remove the files too, and the sandbox is lost though its container lives. The
// conversation is over then.
func (c *Container) hasMemory(ctx context.Context) bool {
	killed := 0
	for range memoryProbes {
		res, err := c.execute(ctx, env.Command{Script: ":", Timeout: memoryProbeTime, Env: map[string]string{"BASH_ENV": ""}})
		if err != nil || res.Failure != "" || res.ExitCode == 0 {
			return true // or something else is wrong
		}
		killed += res.OOMKilled
	}
	if killed <= 0 { // it was slow, for another reason
		return true
	}
	c.client.Abandon(&env.Error{
		Status: env.ContainerDied, Op: "start a shell in " + c.name, Hint: hintMemory,
		Err: errors.New("the container is out of memory as a whole: no command has room to run"),
	})
	return false
}

// goneWait is how long the engine may take to remove a container by itself.
const goneWait = time.Second

// roomLeft is an error when a command failed where the engine's disk has no room
// left: so will every other, whatever the agent does. A file system of the
// container's own that is full (a tmpfs) is the agent's business. The sandbox
// lives, and can still be asked for what was done.
func (c *Container) roomLeft(res env.Result) error {
	if res.ExitCode == 0 || !res.RootFull {
		return nil
	}
	return &env.Error{
		Status: env.HostDiskFull, Op: "execute command in " + c.name, Hint: hintDisk,
		Err: errors.New("a command failed, and the disk that holds the container's files is full"),
	}
}

// bury finds out, once, why the sandbox was lost, and has what is left removed
// while the caller goes on.
func (c *Container) bury(ctx context.Context, why error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fate == nil {
		lost := c.lost(ctx, "execute command in "+c.name, why)
		c.fate = lost
		if lost.Status != env.DaemonUnavailable { // which would not answer this either
			c.burial.Go(func() {
				_, _ = c.engine.remove(ctx, c.name, farewell) // Close repeats it and reports its failure
			})
		}
	}
	return c.fate
}

// patience is how long the removal of the container may take.
func (c *Container) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if lost, ok := errors.AsType[*env.Error](c.fate); ok && lost.Status == env.DaemonUnavailable {
		return time.Second // it may be back
	}
	return removeTimeout
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
	removed := c.letGo(ctx)
	c.burial.Wait()
	if c.link != nil {
		_ = c.link.Close() // a second time: nothing can be done about it
		c.link.settle()
	} else if c.stream != nil {
		_ = c.stream.Close() // as above
	}
	var err error
	if !removed {
		_, err = c.engine.remove(ctx, c.name, c.patience())
	}
	if c.death != nil {
		c.death.stop()
	}
	c.engine.left(c)
	if err != nil {
		c.engine.owe(c.name)
		return fmt.Errorf("close sandbox: %w", err)
	}
	return nil
}

// letGo ends the helper by the end of its input, upon which the engine removes
// the container by itself. That is quicker than to have it killed, and to wait
// for an engine that is about to do so already. It says whether the container
// is known to be gone.
func (c *Container) letGo(ctx context.Context) (removed bool) {
	if c.client == nil {
		return false
	}
	well := c.client.Err() == nil
	defer c.client.Close() //nolint:errcheck // it never fails
	if !well {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goneWait)
	defer cancel()
	gone, failed := c.engine.api.ContainerWait(ctx, c.name, container.WaitConditionRemoved)
	_ = c.client.Close() // it never fails
	select {
	case r := <-gone:
		return r.Error == nil
	case <-failed: //nolint:errcheck // the removal finds out
		return false
	}
}
