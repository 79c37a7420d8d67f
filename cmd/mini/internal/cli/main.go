// Package cli assembles the command line of mini: the tree of commands, help,
// shell completion and the handling of signals and errors. The commands are in
// the packages beside it.
package cli

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/env/local"
)

// gcPercent is lower than Go's default of 100: mini shares the machine with
// the containers that it waits for, and memory is scarcer than CPU time.
const gcPercent = 30

// killGrace is how long Main waits for a command to return after the second
// interrupt.
const killGrace = 5 * time.Second

// Main runs mini with args and returns the exit code. The first interrupt
// cancels the context of the command, so that it can finish its work; the
// second one stops mini within killGrace.
func Main(args []string, s cmdutil.Streams) int {
	if err := local.CloseMemory(); err != nil {
		return cmdutil.Exit(s.Err, err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, kill := context.WithCancelCause(context.Background())
	defer kill(nil)
	s.Err = &cmdutil.Messages{W: s.Err}
	s.Interrupts = &cmdutil.Interrupts{}
	interruptible, stop := cmdutil.WithInterrupts(ctx, kill, s.Err, s.Interrupts)
	defer stop()

	done := make(chan int, 1)
	go func() {
		root := NewRoot(ctx, s)
		root.SetArgs(args)
		done <- cmdutil.Exit(s.Err, root.ExecuteContext(interruptible))
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
