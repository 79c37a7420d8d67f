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

// ShellOptions describe an interactive program to run in a sandbox.
type ShellOptions struct {
	// Command is the program and its arguments; empty means the sandbox's shell.
	Command []string
	Dir     string // working directory; empty means that of commands
	Env     map[string]string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer // not used with TTY, where all output goes to Stdout
	// TTY allocates a terminal. Resize receives its size, first the initial one.
	TTY    bool
	Resize <-chan Size
}

// Size is the size of a terminal, in characters.
type Size struct{ Width, Height uint }

// noDetach is a key sequence to detach that no user types. It replaces the engine's
// default (Ctrl-P, Ctrl-Q), which shells use for other purposes.
const noDetach = "ctrl-^,ctrl-^,ctrl-@,ctrl-^"

// Shell runs a program in the container, concurrently with commands, and returns its
// exit code. Time and output are not limited. If ctx ends, the program runs on until
// the sandbox is closed. Shell does not wait for a blocked read from Stdin.
func (c *Container) Shell(ctx context.Context, s ShellOptions) (int, error) {
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
	created, err := c.engine.api.ContainerExecCreate(ctx, c.name, container.ExecOptions{
		Tty: s.TTY, AttachStdin: true, AttachStdout: true, AttachStderr: true, DetachKeys: noDetach,
		Env: environ, WorkingDir: s.Dir, Cmd: s.Command,
	})
	if err != nil {
		return 0, engineError(ctx, env.StartFailed, op, err)
	}
	conn, err := c.engine.dial(ctx, func(ctx context.Context) (types.HijackedResponse, error) {
		return c.engine.api.ContainerExecAttach(ctx, created.ID, container.ExecAttachOptions{Tty: s.TTY})
	})
	if err != nil {
		return 0, engineError(ctx, env.StartFailed, op, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()

	done := make(chan struct{})
	defer close(done)
	go c.resize(ctx, created.ID, s.Resize, done) // returns when done is closed
	go func() {                                  // returns at the end of Stdin, or at a write after the program's end
		_, _ = io.Copy(conn.Conn, s.Stdin) // receive reports a broken connection
		_ = conn.CloseWrite()
	}()
	err = receive(conn, s)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if lost := c.client.Err(); lost != nil {
		return 0, c.lossError(ctx, "shell in "+c.name, lost)
	}
	if err != nil {
		return 0, engineError(ctx, env.DaemonUnavailable, "connect to shell", err)
	}
	exec, err := c.engine.api.ContainerExecInspect(ctx, created.ID)
	if err != nil {
		return 0, engineError(ctx, env.DaemonUnavailable, "get exit code of shell", err)
	}
	return exec.ExitCode, nil
}

// receive copies the output of the program until it ends. A terminal has one
// stream; otherwise stdout and stderr are multiplexed.
func receive(conn types.HijackedResponse, s ShellOptions) error {
	var err error
	if s.TTY {
		_, err = io.Copy(s.Stdout, conn.Reader)
	} else {
		_, err = stdcopy.StdCopy(s.Stdout, s.Stderr, conn.Reader)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read output: %w", err)
	}
	return nil
}

// resize passes terminal sizes to the engine. It ignores errors, because the next
// size may arrive.
func (c *Container) resize(ctx context.Context, exec string, sizes <-chan Size, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case size, ok := <-sizes:
			if !ok {
				return
			}
			_ = c.engine.api.ContainerExecResize(ctx, exec, container.ResizeOptions{Width: size.Width, Height: size.Height})
		}
	}
}
