package docker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/minibench/mini/env"
)

// defaultPauseLimit is the default of EngineConfig.PauseLimit. The helper receives
// a message four times per lease, so its lease is still valid after this time.
const defaultPauseLimit = lease / 2

// resumeGrace is how long a resumed container may take to report a result that was
// due during the pause.
const resumeGrace = 5 * time.Second

// pauseState tracks the pauses of a container.
type pauseState struct {
	mu       sync.Mutex
	since    time.Time // start of the current pause; zero while the container is not paused
	lastSeen time.Time // when the container was last seen paused
}

// update records whether the container is paused now. It returns the length of the
// current pause, and whether the pause has just started.
func (p *pauseState) update(paused bool, now time.Time) (lasted time.Duration, started bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !paused {
		p.since = time.Time{}
		return 0, false
	}
	if started = p.since.IsZero(); started {
		p.since = now
	}
	p.lastSeen = now
	return now.Sub(p.since), started
}

// wasPausedRecently reports whether the container is paused, or was resumed within the
// last resumeGrace.
func (p *pauseState) wasPausedRecently(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.lastSeen) < resumeGrace
}

// updatePaused updates the pause state of all open containers; it runs after each
// successful ping. A container in which no command runs counts as not paused.
func (e *Engine) updatePaused(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	list, err := e.api.ContainerList(ctx, container.ListOptions{
		Filters: filters.NewArgs(filters.Arg("label", labelOwner), filters.Arg("status", container.StatePaused)),
	})
	if err != nil {
		return // the heartbeat detects a dead engine
	}
	paused := map[string]bool{}
	for _, c := range list {
		paused[displayName(c)] = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.openContainers {
		c.setPaused(paused[c.name] && c.active.Load() > 0)
	}
}

// setPaused records whether the container is paused. It abandons a container whose
// pause exceeds the limit.
func (c *Container) setPaused(paused bool) {
	limit := c.engine.cfg.PauseLimit
	lasted, started := c.pause.update(paused, time.Now())
	if notify := c.engine.cfg.Notify; notify != nil && started {
		notify(fmt.Sprintf("%s is paused; waiting up to %s: docker unpause %[1]s", c.name, limit))
	}
	if lasted > limit {
		c.client.CloseWithError(&env.Error{
			Status: env.ContainerPaused, Op: "wait for " + c.name,
			Hint: "a user or program paused it (docker pause) and did not resume it",
			Err:  fmt.Errorf("it was paused for more than %s", limit),
		})
	}
}

// extendDeadline returns how much longer to wait for the result of a command that
// is overdue. It asks the engine, since the last heartbeat may precede the pause.
func (c *Container) extendDeadline() time.Duration {
	found, err := c.engine.api.ContainerInspect(context.Background(), c.name)
	if err == nil && found.State != nil {
		c.setPaused(found.State.Paused)
	}
	if c.pause.wasPausedRecently(time.Now()) {
		return heartbeatInterval // after that, the helper's client calls again
	}
	return 0
}
