package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// death tells how a container ended. The end of its stream does not: a dead
// container and a dead engine look the same there.
type death struct {
	known  chan struct{} // closed when code or err is set
	code   int64
	err    error
	cancel context.CancelFunc
	worker sync.WaitGroup
}

// watch begins before the start, so that no end is missed however early.
func (e *Engine) watch(ctx context.Context, id string) *death {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d := &death{known: make(chan struct{}), cancel: cancel}
	ended, failed := e.api.ContainerWait(ctx, id, container.WaitConditionNextExit)
	d.worker.Go(func() {
		defer close(d.known)
		select {
		case r := <-ended:
			d.code = r.StatusCode
			if r.Error != nil {
				d.err = errors.New(r.Error.Message)
			}
		case d.err = <-failed:
		}
	})
	return d
}

// stop ends the watch and waits for its goroutine.
func (d *death) stop() {
	d.cancel()
	d.worker.Wait()
}

// How long a reason may take after the end of the stream, so that whoever waits
// for a command hears of the loss within five seconds.
const (
	deathWait  = 2 * time.Second         // of the engine's word that the container ended; 7 ms on a quiet machine
	recallWait = 2500 * time.Millisecond // of its memory, which it takes up to two seconds to tell
)

// lost turns the end of a conversation into the loss of the sandbox that it
// means. The container may still live, and must be removed.
func (c *Container) lost(ctx context.Context, op string, err error) *env.Error {
	if known, ok := errors.AsType[*env.Error](err); ok { // who ended it said why
		return &env.Error{Status: known.Status, Op: op, Err: known.Err, Hint: known.Hint}
	}
	switch {
	case errors.Is(err, helper.ErrFrame):
		return &env.Error{
			Status: env.ProtocolViolation, Op: op, Err: err,
			Hint: "something in the sandbox may be writing in the helper's name; its results are not to be trusted",
		}
	case errors.Is(err, helper.ErrMismatch):
		return &env.Error{Status: env.StartFailed, Op: op, Err: err, Hint: hintHelper}
	case errors.Is(err, helper.ErrSilent):
		return &env.Error{
			Status: env.ContainerDied, Op: op, Err: err,
			Hint: "it was frozen from inside, or the machine is overloaded",
		}
	}
	select {
	case <-c.death.known:
	case <-time.After(deathWait):
		return &env.Error{Status: env.ContainerDied, Op: op, Err: fmt.Errorf("%w; the engine does not say why", err)}
	}
	if c.death.err != nil {
		return gone(op, c.death.err)
	}
	died := &env.Error{Status: env.ContainerDied, Op: op, Err: fmt.Errorf("the container ended with exit code %d", c.death.code)}
	if c.death.code != killed {
		if text := strings.TrimSpace(c.stream.stderr.String()); text != "" {
			died.Err = fmt.Errorf("%w: %.1000q", died.Err, text)
		}
		return died
	}
	switch found, failed := c.engine.recall(ctx, c.name, c.born); {
	case failed != nil:
		return gone(op, failed)
	case !found.any:
		return gone(op, errors.New("it knows nothing of the container any more"))
	case found.oom:
		died.Err = errors.New("the container as a whole ran out of memory and was killed (SIGKILL, exit code 137)")
		died.Hint = hintMemory
	default:
		died.Err = errors.New("the container was killed from outside (SIGKILL, exit code 137)")
		died.Hint = "find what ran docker kill or docker rm on it"
	}
	return died
}

// killed is the exit code of a container whose first process got a SIGKILL.
const killed = 128 + 9

// gone is the loss of a sandbox with its engine.
func gone(op string, err error) *env.Error {
	return &env.Error{
		Status: env.DaemonUnavailable, Op: op, Hint: hintBack,
		Err: fmt.Errorf("the container engine ended, and the sandbox with it: %w", err),
	}
}

// memory is what an engine remembers of a container.
type memory struct{ any, oom bool }

// recall asks the engine's memory of recent events: a container that removes
// itself cannot be inspected any more. An engine that was started since then
// remembers nothing; one that is about to end gives an error.
func (e *Engine) recall(ctx context.Context, name string, since time.Time) (memory, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recallWait)
	defer cancel()
	// The two events of an end come from different sources, in any order; hence
	// the second beyond now, for which the engine keeps the answer open. Its clock
	// may be another one, which costs the hint at worst.
	messages, errs := e.api.Events(ctx, events.ListOptions{
		Since:   strconv.FormatInt(since.Add(-time.Hour).Unix(), 10),
		Until:   strconv.FormatInt(time.Now().Unix()+2, 10), // whole seconds, rounded down
		Filters: filters.NewArgs(filters.Arg("container", name)),
	})
	var m memory
	for {
		select {
		case event := <-messages:
			m.any = true
			if event.Action == events.ActionOOM {
				m.oom = true
				return m, nil
			}
		case err := <-errs:
			if !errors.Is(err, io.EOF) { // io.EOF: there are no more, or the engine ends
				return m, err
			}
			_, err = e.api.Ping(ctx)
			return m, err
		}
	}
}
