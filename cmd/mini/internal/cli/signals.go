package cli

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

// burst is how soon a second signal is part of the first: timeout(1) sends one
// to its child, and then one to all of its group.
const burst = 50 * time.Millisecond

// interrupts lets a session with a person take Ctrl-C, which does not end it.
type interrupts struct {
	mu sync.Mutex
	to interruptee // nil while nobody takes them
}

// interruptee is who takes an interrupt. One that is leaving takes no more.
type interruptee interface {
	Interrupt()
	Leaving() bool
}

// divert sends interrupts to somebody until the returned function is called.
func (i *interrupts) divert(to interruptee) func() {
	i.set(to)
	return func() { i.set(nil) }
}

func (i *interrupts) set(to interruptee) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.to = to
}

// take says whether somebody took a signal.
func (i *interrupts) take(s os.Signal) bool {
	i.mu.Lock()
	to := i.to
	i.mu.Unlock()
	if to == nil || s != os.Interrupt || to.Leaving() {
		return false
	}
	to.Interrupt()
	return true
}

// interruptible returns a context that ends at the first signal, with cause
// agent.ErrInterrupted, so that what runs can end in good order. The second
// signal calls kill. A broken pipe on stdout or stderr is an error of that
// write and does not end a run.
func interruptible(ctx context.Context, kill context.CancelCauseFunc, w io.Writer, diverted *interrupts) (context.Context, func()) {
	soft, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup's wish; a script's background jobs ignore SIGINT without one
		signal.Notify(signals, syscall.SIGHUP)
	}
	// Caught, not ignored: what is ignored stays so in the commands that the
	// local environment starts.
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
				if diverted.take(s) {
					continue
				}
			}
			switch {
			case first.IsZero():
				first = time.Now()
			case time.Since(first) < burst:
				continue
			default:
				_, _ = fmt.Fprintln(w, "mini: killing what runs") // only for people
				kill(agent.ErrInterrupted)
				return
			}
			_, _ = fmt.Fprintln(w, "mini: stopping in good order, and keeping what was done; once more to stop at once") // only for people
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

// interruptSelf is Ctrl-C where the terminal makes no signal of it.
func interruptSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Signal(os.Interrupt) // where there are no signals, the key does nothing
	}
}
