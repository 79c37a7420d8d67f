package docker

import (
	"context"
	"errors"
	"fmt"
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

// deathWait is how long after the end of the stream its reason may take; it
// took 7 ms when measured on a quiet machine.
const deathWait = 5 * time.Second

// lost turns the end of a conversation into the loss of the sandbox that it
// means. The container may still live, and must be removed.
func (c *Container) lost(ctx context.Context, op string, err error) *env.Error {
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
			Hint: "it was frozen from inside, or the machine is overloaded or was paused",
		}
	}
	select {
	case <-c.death.known:
	case <-time.After(deathWait):
		return &env.Error{Status: env.ContainerDied, Op: op, Err: err}
	}
	if c.death.err != nil {
		return &env.Error{Status: env.DaemonUnavailable, Op: op, Err: errors.Join(err, c.death.err), Hint: hintDaemon}
	}
	died := &env.Error{Status: env.ContainerDied, Op: op, Err: fmt.Errorf("%w: container exited with code %d", err, c.death.code)}
	if text := strings.TrimSpace(c.stream.stderr.String()); text != "" {
		died.Err = fmt.Errorf("%w: %s", died.Err, text)
	}
	if c.death.code == 137 && c.engine.ranOutOfMemory(ctx, c.name, c.born) {
		died.Hint = "it ran out of memory; give it more (environment.memory)"
	}
	return died
}

// ranOutOfMemory asks the engine's memory of recent events: a container that
// removes itself cannot be inspected any more.
func (e *Engine) ranOutOfMemory(ctx context.Context, name string, since time.Time) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deathWait)
	defer cancel()
	// The two events of an end come from different sources, in any order; hence
	// the second beyond now, for which the engine keeps the answer open. Its clock
	// may be another one, which costs the hint at worst.
	messages, errs := e.api.Events(ctx, events.ListOptions{
		Since:   strconv.FormatInt(since.Add(-time.Hour).Unix(), 10),
		Until:   strconv.FormatInt(time.Now().Unix()+2, 10), // whole seconds, rounded down
		Filters: filters.NewArgs(filters.Arg("container", name), filters.Arg("event", string(events.ActionOOM))),
	})
	select {
	case <-messages:
		return true
	case <-errs: //nolint:errcheck // io.EOF says that there are no more; another error leaves the hint out
		return false
	}
}
