//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"io"
	"syscall"
)

// guardDone is what a process writes to its guard when nothing is left to delete.
const guardDone = "done"

// Guard deletes the owner of another process, and so its pods, when in ends without
// guardDone: the other process was killed and could not do it. It is the work of a
// process of its own, which Settings.Guard starts.
func Guard(ctx context.Context, s Settings, owner string, in io.Reader) error {
	last, err := io.ReadAll(io.LimitReader(in, int64(len(guardDone))))
	if err == nil && string(last) == guardDone {
		return nil
	}
	config, namespace, err := load(s)
	if err != nil {
		return err
	}
	c, err := connect(s, config, namespace)
	if err != nil {
		return err
	}
	defer c.stop()
	return c.deleteOwner(ctx, owner)
}

// startGuard starts the guard of an owner. It returns a function that ends it.
func (c *Cluster) startGuard(owner string) (stop func(), err error) {
	if c.settings.Guard == nil {
		return func() {}, nil
	}
	cmd := c.settings.Guard(c.namespace, owner)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it must survive what ends this process
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	return func() {
		_, _ = io.WriteString(stdin, guardDone) // it may have ended
		_ = stdin.Close()                       // likewise
		_ = cmd.Wait()                          // its result does not matter any more
	}, nil
}
