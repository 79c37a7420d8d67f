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

// defaultPauseLimit is how long a paused container is waited for. It hears of its
// owner four times per lease, and has to find him alive when it wakes.
const defaultPauseLimit = lease / 2

// stillness is how long a container was paused while commands ran in it, or
// files were carried, as far as anybody looked.
type stillness struct {
	mu      sync.Mutex
	at      int           // commands and transfers under way; while there is none, pauses do not matter
	since   time.Time     // of the pause that goes on; zero while there is none
	total   time.Duration // of the pauses that are over
	excused time.Duration // of total: what commands were given more time for
}

// begin is for the start of a command, or of a transfer: what was before is
// nobody's business.
func (s *stillness) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at++
}

// see notes whether the container is paused now, and returns for how long it
// has been.
func (s *stillness) see(paused bool, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.at == 0:
		return 0
	case paused && s.since.IsZero():
		s.since = now
	case !paused && !s.since.IsZero():
		s.total += now.Sub(s.since)
		s.since = time.Time{}
	}
	if s.since.IsZero() {
		return 0
	}
	return now.Sub(s.since)
}

// excuse is how much longer a command may take that is late.
func (s *stillness) excuse() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() {
		return beat // and then it is asked again
	}
	more := s.total - s.excused
	s.excused = s.total
	return more
}

// settle is for the end of what begin began: the next one begins with nothing.
// A pause that was seen, and may have ended since, is not counted on.
func (s *stillness) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at--; s.at == 0 {
		s.since = time.Time{}
		s.excused = s.total
	}
}

// lookForPaused finds out which of the containers at work are paused. It is
// asked at each beat of the pulse, by raw: it must not wait for itself.
func (e *Engine) lookForPaused(ctx context.Context, raw api) {
	ctx, cancel := context.WithTimeout(ctx, silenceLimit)
	defer cancel()
	list, err := raw.ContainerList(ctx, container.ListOptions{
		Filters: filters.NewArgs(filters.Arg("label", labelOwner), filters.Arg("status", container.StatePaused)),
	})
	if err != nil {
		return // the pulse is there to judge that
	}
	paused := map[string]bool{}
	for _, c := range list {
		paused[displayName(c)] = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.open {
		c.found(paused[c.name])
	}
}

// found is told whether the container is paused, and gives it up when that has
// lasted too long.
func (c *Container) found(paused bool) {
	limit := c.engine.cfg.PauseLimit
	lasted := c.still.see(paused, time.Now())
	if notice := c.engine.cfg.Notice; notice != nil && lasted > 0 && !c.noticed {
		notice(fmt.Sprintf("%s is paused, and waited for up to %s: docker unpause %[1]s", c.name, limit))
	}
	c.noticed = lasted > 0
	if lasted > limit {
		c.client.Abandon(&env.Error{
			Status: env.ContainerPaused, Op: "wait for " + c.name,
			Hint: "somebody, or something, paused it (docker pause) and did not resume it",
			Err:  fmt.Errorf("it was paused for more than %s", limit),
		})
	}
}

// overdue says how much longer a command may take whose report is late. The
// engine is asked, since the last beat may be just before the pause.
func (c *Container) overdue() time.Duration {
	found, err := c.engine.api.ContainerInspect(context.Background(), c.name)
	if err == nil && found.State != nil {
		c.found(found.State.Paused)
	}
	return c.still.excuse()
}
