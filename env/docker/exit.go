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

// exitWatcher waits for a container to exit. The end of its stream is not enough:
// it looks the same for an exited container and a stopped engine.
type exitWatcher struct {
	done   chan struct{} // closed when code or err is set
	code   int64
	err    error
	cancel context.CancelFunc
	worker sync.WaitGroup
}

// watchExit starts an exitWatcher. It must be called before the container starts, to
// see an early exit.
func (e *Engine) watchExit(ctx context.Context, id string) *exitWatcher {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &exitWatcher{done: make(chan struct{}), cancel: cancel}
	ended, failed := e.api.ContainerWait(ctx, id, container.WaitConditionNextExit)
	w.worker.Go(func() {
		defer close(w.done)
		select {
		case r := <-ended:
			w.code = r.StatusCode
			if r.Error != nil {
				w.err = errors.New(r.Error.Message)
			}
		case w.err = <-failed:
		}
	})
	return w
}

// stop ends the watch and waits for its goroutine.
func (w *exitWatcher) stop() {
	w.cancel()
	w.worker.Wait()
}

// How long to wait for the reason after the stream ended. An idle engine reports the
// exit code after 7 ms, and the events after one to two seconds; a busy one may take
// longer. The heartbeat detects one that is silent.
const (
	exitWait   = 10 * time.Second
	eventsWait = 10 * time.Second
)

// lossError maps the end of the connection to the reason why the sandbox was lost.
// The container may still run and must be removed.
func (c *Container) lossError(ctx context.Context, op string, err error) *env.Error {
	if known, ok := errors.AsType[*env.Error](err); ok { // the connection was closed for this reason
		return &env.Error{Status: known.Status, Op: op, Err: known.Err, Hint: known.Hint}
	}
	switch {
	case errors.Is(err, helper.ErrFrame):
		return &env.Error{
			Status: env.ProtocolViolation, Op: op, Err: err,
			Hint: "a process in the sandbox may have written to the helper's connection; do not trust its results",
		}
	case errors.Is(err, helper.ErrMismatch):
		return &env.Error{Status: env.StartFailed, Op: op, Err: err, Hint: hintHelper}
	case errors.Is(err, helper.ErrNoResponse):
		return &env.Error{
			Status: env.ContainerDied, Op: op, Err: err,
			Hint: "the sandbox was frozen from inside, or the machine is overloaded",
		}
	}
	select {
	case <-c.exit.done:
	case <-time.After(exitWait):
		return &env.Error{Status: env.ContainerDied, Op: op, Err: fmt.Errorf("%w; the engine did not report why", err)}
	}
	if c.exit.err != nil {
		return engineLost(op, c.exit.err)
	}
	died := &env.Error{Status: env.ContainerDied, Op: op, Err: fmt.Errorf("the container ended with exit code %d", c.exit.code)}
	if c.exit.code != exitKilled {
		if text := strings.TrimSpace(c.stream.stderr.String()); text != "" {
			died.Err = fmt.Errorf("%w: %.1000q", died.Err, text)
		}
		return died
	}
	switch found, failed := c.engine.recentEvents(ctx, c.name, c.created); {
	case failed != nil:
		return engineLost(op, failed)
	case !found.hasAny:
		return engineLost(op, errors.New("it has no record of the container"))
	case found.oom:
		died.Err = errors.New("the container as a whole ran out of memory and was killed (SIGKILL, exit code 137)")
		died.Hint = hintMemory
	default:
		died.Err = errors.New("the container was killed from outside (SIGKILL, exit code 137)")
		died.Hint = "find what ran docker kill or docker rm on it, or stopped the engine"
	}
	return died
}

// exitKilled is the exit code of a container whose PID 1 was killed by SIGKILL.
const exitKilled = 128 + 9

// engineLost returns the error for a sandbox lost together with its engine.
func engineLost(op string, err error) *env.Error {
	return &env.Error{
		Status: env.DaemonUnavailable, Op: op, Hint: hintRestarted,
		Err: fmt.Errorf("the container engine ended, and the sandbox with it: %w", err),
	}
}

// containerEvents summarizes the engine's recent events of a container.
type containerEvents struct{ hasAny, oom bool }

// recentEvents asks the engine for recent events: a container with AutoRemove
// cannot be inspected after its exit. An engine that restarted since then has no
// events. One that has stopped returns an error, but one that is stopping may still
// answer.
func (e *Engine) recentEvents(ctx context.Context, name string, since time.Time) (containerEvents, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventsWait)
	defer cancel()
	// The two events of an exit, oom and die, come from different sources, in any order,
	// so the response stays open for at least one more second. If the engine's clock
	// differs a little from ours, only the hint may be missing.
	messages, errs := e.api.Events(ctx, events.ListOptions{
		Since:   strconv.FormatInt(since.Add(-time.Hour).Unix(), 10),
		Until:   strconv.FormatInt(time.Now().Unix()+2, 10), // whole seconds
		Filters: filters.NewArgs(filters.Arg("container", name)),
	})
	var found containerEvents
	for {
		select {
		case event := <-messages:
			found.hasAny = true
			if event.Action == events.ActionOOM {
				found.oom = true
				return found, nil
			}
		case err := <-errs:
			if !errors.Is(err, io.EOF) { // io.EOF: no more events, or the engine is stopping
				return found, err
			}
			_, err = e.api.Ping(ctx)
			return found, err
		}
	}
}
