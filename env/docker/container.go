package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// Container is a running sandbox. It implements env.Environment.
type Container struct {
	engine  *Engine
	name    string
	created time.Time
	stream  *attachment
	conn    helperConn // the connection to the helper; nil until it is made
	exit    *exitWatcher
	client  *helper.Client
	info    env.Info
	pause   pauseState
	active  atomic.Int32 // running commands and transfers; pauses matter only while it is positive
	// releaseImage releases the lease on the image.
	releaseImage func()

	closeMu sync.Mutex
	closed  bool
	mu      sync.Mutex
	lossErr error // why the sandbox was lost; nil while it is usable
}

// helperConn is a connection to a helper. Its wait method, called after Close,
// waits for the goroutines that read from the connection.
type helperConn interface {
	io.ReadWriteCloser
	wait()
}

var _ env.Environment = (*Container)(nil)

// Name is the container's name in the engine.
func (c *Container) Name() string { return c.name }

// Info describes the sandbox.
func (c *Container) Info() env.Info { return c.info }

// Execute runs one command; see env.Environment. If the sandbox is lost, the
// error is an *env.Error, and every later call returns the same error.
func (c *Container) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	cmd.Tools = helper.WrapTools(cmd.Tools, c.info, c.executeNested)
	res, err := c.execute(ctx, cmd)
	if err == nil && res.OOMKilled > 0 && res.ExitCode != 0 && !c.hasMemory(ctx) {
		return res, c.recordLoss(ctx, c.client.Err())
	}
	return c.checkResult(ctx, res, err)
}

// executeNested runs a nested command for a tool. The Execute of the outer command
// already watches the engine and checks the memory.
func (c *Container) executeNested(ctx context.Context, nested env.Environment, cmd env.Command) (env.Result, error) {
	res, err := nested.Execute(ctx, cmd)
	return c.checkResult(ctx, res, err)
}

// checkResult maps a transport error to an *env.Error, and detects a full disk.
func (c *Container) checkResult(ctx context.Context, res env.Result, err error) (env.Result, error) {
	switch {
	case err == nil:
		return res, c.checkDisk(res)
	case c.client.Err() == nil: // the sandbox is usable: ctx ended, or the sink failed
		return res, fmt.Errorf("execute command: %w", err)
	}
	return res, c.wrapLoss(ctx, err)
}

// execute runs one command and watches the engine meanwhile.
func (c *Container) execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	defer c.watchEngine(ctx)()
	return c.client.Execute(ctx, cmd)
}

// watchEngine watches the engine's heartbeat until stop is called. If the
// heartbeat fails, it abandons the connection to the helper.
func (c *Container) watchEngine(ctx context.Context) (stop func()) {
	c.active.Add(1)
	stopWatch := c.engine.heartbeat.watch(ctx, c.client.CloseWithError)
	return func() {
		stopWatch()
		c.active.Add(-1)
	}
}

// How hasMemory probes a container for free memory.
const (
	memoryProbes    = 2
	memoryProbeTime = 5 * time.Second
)

// hasMemory reports whether the container has memory left to start a shell. It is
// called after the OOM killer killed a process. Pages of a tmpfs cannot be
// reclaimed: if they fill the memory, the kernel kills the shell of every later
// command, even one that would remove the files. hasMemory then abandons the
// sandbox, although its container still runs.
func (c *Container) hasMemory(ctx context.Context) bool {
	killed := 0
	for range memoryProbes {
		res, err := c.execute(ctx, env.Command{Script: ":", Timeout: memoryProbeTime, Env: map[string]string{"BASH_ENV": ""}})
		if err != nil || res.Failure != "" || res.ExitCode == 0 {
			return true // there is memory, or the probe failed for another reason
		}
		killed += res.OOMKilled
	}
	if killed <= 0 { // the probes were slow for another reason
		return true
	}
	c.client.CloseWithError(&env.Error{
		Status: env.ContainerDied, Op: "start a shell in " + c.name, Hint: hintMemory,
		Err: errors.New("the container is out of memory: the kernel kills every new shell"),
	})
	return false
}

// autoRemoveWait is how long the engine may take to remove an exited container
// (AutoRemove). Podman does not report the removal, so closing takes that long there.
const autoRemoveWait = time.Second

// checkDisk returns an error if a command failed and the disk with the container's file
// system is full: every later command would fail too. A full tmpfs is no error, because
// the agent can delete files in it. The sandbox stays usable, so that the agent's work
// can be read.
func (c *Container) checkDisk(res env.Result) error {
	if res.ExitCode == 0 || !res.DiskFull {
		return nil
	}
	return &env.Error{
		Status: env.HostDiskFull, Op: "execute command in " + c.name, Hint: hintDisk,
		Err: errors.New("a command failed, and the disk that holds the container's files is full"),
	}
}

// recordLoss determines why the sandbox was lost, and returns the reason. Later calls
// return the same reason.
func (c *Container) recordLoss(ctx context.Context, cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lossErr == nil {
		c.lossErr = c.lossError(ctx, "execute command in "+c.name, cause)
	}
	return c.lossErr
}

// removeLimit is how long the removal of the container may take.
func (c *Container) removeLimit() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if loss, ok := errors.AsType[*env.Error](c.lossErr); ok && loss.Status == env.DaemonUnavailable {
		return time.Second // the engine may have been restarted
	}
	return removeTimeout
}

// Close kills every process in the container and removes it. Close waits for the
// removal, even if ctx has ended, but not much longer than a minute. A second call waits
// for the first and returns nil.
func (c *Container) Close(ctx context.Context) error {
	c.closeMu.Lock()
	defer c.closeMu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.releaseImage != nil {
		defer c.releaseImage()
	}
	return c.teardown(ctx)
}

// teardown frees all resources but the lease on the image, also those of a container
// whose start failed.
func (c *Container) teardown(ctx context.Context) error {
	removed := c.stopHelper(ctx)
	if c.conn != nil {
		_ = c.conn.Close() // may be closed already
		c.conn.wait()
	} else if c.stream != nil {
		_ = c.stream.Close() // may be closed already
	}
	var err error
	if !removed {
		_, err = c.engine.remove(ctx, c.name, c.removeLimit())
	}
	if c.exit != nil {
		c.exit.stop()
	}
	c.engine.removeContainer(c)
	if err != nil {
		return fmt.Errorf("close sandbox: %w", err)
	}
	return nil
}

// stopHelper closes the helper's input. The helper exits, and the engine removes
// the container (AutoRemove), which is faster than an explicit removal. stopHelper
// reports whether the container is known to be removed.
func (c *Container) stopHelper(ctx context.Context) (removed bool) {
	if c.client == nil {
		return false
	}
	usable := c.client.Err() == nil
	defer c.client.Close() //nolint:errcheck // it never fails
	if !usable {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), autoRemoveWait)
	defer cancel()
	gone, failed := c.engine.api.ContainerWait(ctx, c.name, container.WaitConditionRemoved)
	_ = c.client.Close() // it never fails
	select {
	case r := <-gone:
		return r.Error == nil
	case <-failed: //nolint:errcheck // the explicit removal reports it
		return false
	}
}
