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

// signalBurst is the time within which a second signal counts as the first: timeout(1) signals
// its child and then the process group.
const signalBurst = 50 * time.Millisecond

// Interrupts lets an interactive session handle Ctrl-C instead of ending.
type Interrupts struct {
	mu      sync.Mutex
	handler interruptHandler // nil: not diverted
}

// interruptHandler handles interrupts. After it has quit it handles no more.
type interruptHandler interface {
	Interrupt()
	HasQuit() bool
}

// Divert sends interrupts to a handler until the returned function is called.
func (i *Interrupts) Divert(to interruptHandler) func() {
	i.Set(to)
	return func() { i.Set(nil) }
}

// Set replaces the handler; nil removes it.
func (i *Interrupts) Set(to interruptHandler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handler = to
}

// handle passes s to the handler and reports whether it was handled.
func (i *Interrupts) handle(s os.Signal) bool {
	i.mu.Lock()
	to := i.handler
	i.mu.Unlock()
	if to == nil || s != os.Interrupt || to.HasQuit() {
		return false
	}
	to.Interrupt()
	return true
}

// WithInterrupts returns a context that the first signal cancels with cause
// agent.ErrInterrupted, so that the run can finish in order. The second signal calls kill. A
// broken pipe on stdout or stderr is an error of that write and does not end a run.
func WithInterrupts(ctx context.Context, kill context.CancelCauseFunc, w io.Writer, diverted *Interrupts) (context.Context, func()) {
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
			case s := <-signals:
				if diverted.handle(s) {
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

// InterruptSelf sends SIGINT to this process, for terminals in raw mode.
func InterruptSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Signal(os.Interrupt) // not supported on every system
	}
}
