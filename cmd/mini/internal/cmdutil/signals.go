package cmdutil

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/minibench/mini/agent"
)

// signalBurst is the time after the first signal in which further signals do not count: timeout(1)
// signals its child and then the process group.
const signalBurst = 50 * time.Millisecond

// Interrupts passes Ctrl-C to the handler of an interactive session, so that Ctrl-C need not end
// mini.
type Interrupts struct {
	mu      sync.Mutex
	handler interruptHandler // nil if no session handles Ctrl-C
}

// interruptHandler handles interrupts until HasQuit returns true.
type interruptHandler interface {
	Interrupt()
	HasQuit() bool
}

// Divert passes interrupts to a handler until the returned function is called.
func (i *Interrupts) Divert(handler interruptHandler) func() {
	i.Set(handler)
	return func() { i.Set(nil) }
}

// Set replaces the handler; nil removes it.
func (i *Interrupts) Set(handler interruptHandler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handler = handler
}

// handle passes sig to the handler and reports whether it did so. It passes only os.Interrupt, and
// only to a handler that has not quit.
func (i *Interrupts) handle(sig os.Signal) bool {
	i.mu.Lock()
	handler := i.handler
	i.mu.Unlock()
	if handler == nil || sig != os.Interrupt || handler.HasQuit() {
		return false
	}
	handler.Interrupt()
	return true
}

// WithInterrupts returns a context that the first signal cancels with cause
// agent.ErrInterrupted, so that the run can save its results. The second signal calls kill.
// Signals that interrupts handles, or that follow the first within signalBurst, do not count.
// WithInterrupts also makes a write to a broken pipe return an error instead of ending mini. The
// returned function stops the handling of signals.
func WithInterrupts(ctx context.Context, kill context.CancelCauseFunc, w io.Writer, interrupts *Interrupts) (context.Context, func()) {
	soft, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores SIGHUP
		signal.Notify(signals, syscall.SIGHUP)
	}
	// Catch SIGPIPE instead of ignoring it: commands of the local environment
	// would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		var first time.Time
		for {
			select {
			case <-done:
				return
			case sig := <-signals:
				if interrupts.handle(sig) {
					continue
				}
			}
			switch {
			case first.IsZero():
				first = time.Now()
			case time.Since(first) < signalBurst:
				continue
			default:
				_, _ = fmt.Fprintln(w, "mini: killing all running commands")
				kill(agent.ErrInterrupted)
				return
			}
			_, _ = fmt.Fprintln(w, "mini: stopping and saving results; press Ctrl-C again to kill")
			cancel(agent.ErrInterrupted)
		}
	}()
	return soft, func() {
		signal.Stop(signals)
		close(done)
		<-finished
		cancel(nil)
	}
}

// InterruptSelf sends SIGINT to this process. A terminal in raw mode does not send it at Ctrl-C.
func InterruptSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Signal(os.Interrupt) // not supported on every system
	}
}
