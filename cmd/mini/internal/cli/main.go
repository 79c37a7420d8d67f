// Package cli assembles the command line of mini: the tree of commands, help,
// shell completion and the handling of signals and errors. Sibling packages
// implement the commands.
package cli

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/env/local"
)

// gcPercent is lower than Go's default of 100: mini shares the machine with
// the containers that it waits for, and memory is scarcer than CPU time.
const gcPercent = 30

// killGrace is how long Main waits at most for a command to return after the
// second interrupt.
const killGrace = 5 * time.Second

// Main runs mini with args, as Arguments returns them, and returns the exit code. The first interrupt
// cancels the context of the command, so that the command can save its results.
// The second interrupt ends mini within killGrace. Interrupts that an interactive
// session handles do not count.
func Main(args []string, s cmdutil.Streams) int {
	if err := local.ProtectMemory(); err != nil {
		return cmdutil.ReportError(s.Err, err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, kill := context.WithCancelCause(context.Background())
	defer kill(nil)
	s.Err = &cmdutil.Messages{W: s.Err}
	s.Interrupts = &cmdutil.Interrupts{}
	commandCtx, stop := cmdutil.WithInterrupts(ctx, kill, s.Err, s.Interrupts)
	defer stop()

	root := NewRoot(app.New(ctx, s))
	done := make(chan int, 1)
	go func() {
		args, err := expandAlias(args, s.Err)
		if err == nil {
			root.SetArgs(args)
			err = root.ExecuteContext(commandCtx)
		}
		done <- cmdutil.ReportError(s.Err, err)
	}()
	select {
	case code := <-done:
		return code
	case <-ctx.Done():
	}
	select {
	case <-done:
	case <-time.After(killGrace):
	}
	return cmdutil.ExitInterrupted
}
