package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/minibench/mini/env"
)

// Shell is a program that a person works with in a sandbox.
type Shell struct {
	// Command is the program and its arguments; empty means the sandbox's shell.
	Command []string
	Dir     string // empty means where commands start
	Env     map[string]string
	In      io.Reader
	Out     io.Writer
	Err     io.Writer // not used with TTY, where everything goes to Out
	// TTY gives the program a terminal of its own, and Resize tells its size,
	// first of all the one to begin with.
	TTY    bool
	Resize <-chan Size
}

// Size is that of a terminal, in characters.
type Size struct{ Width, Height uint }

// noDetach are keys that nobody presses in a row: what a shell means by the
// engine's own (Ctrl-P, Ctrl-Q) is not to be held back.
const noDetach = "ctrl-^,ctrl-^,ctrl-@,ctrl-^"

// Shell runs a program beside the sandbox's commands and returns its exit code.
// It is not bounded in time or output; when ctx ends it is left to the end of
// the sandbox. A read from In that goes on when the program has ended is not
// waited for.
func (c *Container) Shell(ctx context.Context, s Shell) (int, error) {
	const op = "open shell"
	if len(s.Command) == 0 {
		s.Command = []string{c.client.Hello().Shell}
	}
	if s.Dir == "" {
		s.Dir = c.info.Dir
	}
	var environ []string
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		environ = append(environ, name+"="+s.Env[name])
	}
	made, err := c.engine.api.ContainerExecCreate(ctx, c.name, container.ExecOptions{
		Tty: s.TTY, AttachStdin: true, AttachStdout: true, AttachStderr: true, DetachKeys: noDetach,
		Env: environ, WorkingDir: s.Dir, Cmd: s.Command,
	})
	if err != nil {
		return 0, failure(ctx, env.StartFailed, op, err)
	}
	conn, err := c.engine.api.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{Tty: s.TTY})
	if err != nil {
		return 0, failure(ctx, env.StartFailed, op, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()

	over := make(chan struct{})
	defer close(over)
	go c.resize(ctx, made.ID, s.Resize, over) // ends with over
	go func() {                               // ends with In, or with the first write after the end
		_, _ = io.Copy(conn.Conn, s.In) // that nobody takes it any more shows below
		_ = conn.CloseWrite()
	}()
	err = receive(conn, s)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if fate := c.client.Err(); fate != nil {
		return 0, c.lost(ctx, "shell in "+c.name, fate)
	}
	if err != nil {
		return 0, failure(ctx, env.DaemonUnavailable, "talk to shell", err)
	}
	done, err := c.engine.api.ContainerExecInspect(ctx, made.ID)
	if err != nil {
		return 0, failure(ctx, env.DaemonUnavailable, "ask for the end of the shell", err)
	}
	return done.ExitCode, nil
}

// receive copies what the program writes until it ends. With a terminal there
// is one stream, otherwise two in one.
func receive(conn types.HijackedResponse, s Shell) error {
	var err error
	if s.TTY {
		_, err = io.Copy(s.Out, conn.Reader)
	} else {
		_, err = stdcopy.StdCopy(s.Out, s.Err, conn.Reader)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read output: %w", err)
	}
	return nil
}

// resize passes on sizes. A size that does not arrive is no reason to stop:
// the next one may.
func (c *Container) resize(ctx context.Context, exec string, sizes <-chan Size, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case size, ok := <-sizes:
			if !ok {
				return
			}
			_ = c.engine.api.ContainerExecResize(ctx, exec, container.ResizeOptions{Width: size.Width, Height: size.Height})
		}
	}
}
