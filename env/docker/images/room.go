package images

import (
	"context"
	"errors"
	"fmt"

	"github.com/minibench/mini/env"
)

// awaitRoom waits until the engine's disk has its floor free, and so many
// bytes more. What mini pulled and will not need any more goes first. Who is
// not urgent does not wait.
func (s *Store) awaitRoom(ctx context.Context, n Need, bytes int64, urgent func() bool) error {
	for {
		var free int64
		known := false
		if s.cfg.MinFree > 0 && s.host.Free != nil {
			free, known = s.host.Free()
		}
		lacking := s.cfg.MinFree + bytes - free
		if !known || lacking <= 0 {
			s.tellOnce(Note{Kind: Resumed, Image: n.Ref, For: n.For, Text: "there is room on the engine's disk again"})
			return nil
		}
		if !urgent() {
			return errNotNow
		}
		if s.makeRoom(ctx, lacking, false) > 0 {
			continue
		}
		text := fmt.Sprintf("%s are free on the engine's disk, and run.min_free_disk with this image wants %s; remove what is not needed there (docker system df shows it)",
			size(free), size(s.cfg.MinFree+bytes))
		if s.cfg.NoWait {
			return &env.Error{Status: env.HostDiskFull, Op: "make room for " + n.Ref, Err: errors.New(text)}
		}
		s.tellOnce(Note{Kind: Room, Image: n.Ref, For: n.For, Text: "waiting: " + text + ", or stop mini with Ctrl-C"})
		if err := await(ctx, s.look(func() {}), s.cfg.Poll); err != nil {
			return err
		}
	}
}

// awaitBudget waits until an image fits the budget, and pledges room to it
// until unpledge is called. whole is what all of it takes at least, and bytes
// the part that is not here yet.
func (s *Store) awaitBudget(ctx context.Context, n Need, whole, bytes int64, urgent func() bool) (unpledge func(), err error) {
	if s.cfg.Budget == 0 {
		return func() {}, nil
	}
	if whole > s.cfg.Budget {
		return nil, s.tooBig(n.Ref, "at least "+size(whole))
	}
	for {
		m, err := s.room(ctx, bytes, urgent())
		if err != nil {
			return nil, err
		}
		if m.fits {
			s.tellOnce(Note{Kind: Resumed, Image: n.Ref, For: n.For, Text: "there is room in the budget again"})
			return func() { s.change(func() { s.pledged -= bytes }) }, nil
		}
		if !urgent() {
			return nil, errNotNow
		}
		text := fmt.Sprintf("the images that mini pulled take %s of the budget of %s, and those in use stay", size(m.taken), size(s.cfg.Budget))
		if s.cfg.NoWait || !m.busy {
			return nil, &env.Error{
				Status: env.PullFailed, Op: "pull image " + n.Ref, Err: errors.New(text),
				Hint: "give more with --image-budget, or see mini images prune",
			}
		}
		s.tellOnce(Note{Kind: Room, Image: n.Ref, For: n.For, Text: "waiting: " + text})
		if err := await(ctx, s.look(func() {}), s.cfg.Poll); err != nil {
			return nil, err
		}
	}
}

func (s *Store) tooBig(ref, takes string) error {
	return &env.Error{
		Status: env.PullFailed, Op: "pull image " + ref,
		Err:  fmt.Errorf("it takes %s, more than the budget of %s", takes, size(s.cfg.Budget)),
		Hint: "give more with --image-budget (run.image_budget)",
	}
}

// measured is how the budget stands.
type measured struct {
	taken int64
	fits  bool
	busy  bool // something in use may be given back
}

// room removes images until so many bytes fit the budget, and pledges them.
func (s *Store) room(ctx context.Context, bytes int64, urgent bool) (m measured, err error) {
	done, err := s.makingRoom(ctx)
	if err != nil {
		return m, err
	}
	defer done()
	// What is pledged now is measured next, or else still on its way; what
	// arrives in between counts twice, and never not at all.
	goal := func() func(int64) int64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		m.busy = s.pledged > 0
		room := s.cfg.Budget - s.pledged - bytes
		return func(taken int64) int64 { return taken - room }
	}
	left, err := s.shrink(ctx, goal, urgent, "")
	if err != nil {
		return m, err
	}
	m.taken, m.fits = left.taken, left.surplus <= 0
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range left.list {
		m.busy = m.busy || o.InUse || s.holds(o) || o.is(left.others)
	}
	if m.fits {
		s.pledged += bytes
	}
	return m, nil
}

// withinBudget is the goal of who only looks at what is here.
func (s *Store) withinBudget() func(int64) int64 {
	return func(taken int64) int64 { return taken - s.cfg.Budget }
}

// fits holds an image that has arrived against the budget: now it is known what
// it takes. Where others are in use it may stay all the same until they are not.
func (s *Store) fits(ctx context.Context, n Need, name string, img Image) error {
	if s.cfg.Budget == 0 {
		return nil
	}
	done, err := s.makingRoom(ctx)
	if err != nil {
		return err
	}
	defer done()
	left, err := s.shrink(ctx, s.withinBudget, true, name)
	if err != nil || left.surplus <= 0 {
		return err
	}
	if img.Size <= s.cfg.Budget {
		s.mu.Lock()
		s.over = true
		s.mu.Unlock()
		return nil
	}
	err = s.ledger.with(ctx, func(r *record) (bool, error) {
		if s.engine.Remove(ctx, name) != nil {
			return false, nil //nolint:nilerr // it is in use, and prune will see to it
		}
		delete(r.Pulled, name)
		s.forgetLayers()
		return true, nil
	})
	if err != nil {
		return err
	}
	return s.tooBig(n.Ref, size(img.Size))
}

// trim removes what was over the budget when all of it was in use.
func (s *Store) trim(ctx context.Context) error {
	s.mu.Lock()
	over := s.over
	s.over = false
	s.mu.Unlock()
	if !over {
		return nil
	}
	left := inventory{}
	done, err := s.makingRoom(ctx)
	if err == nil {
		left, err = s.shrink(ctx, s.withinBudget, true, "")
		done()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = s.over || err != nil || left.surplus > 0
	return err
}

// makeRoom removes images of mini's for so many bytes, and says how many it
// got. soon takes also those that this run will need again.
func (s *Store) makeRoom(ctx context.Context, bytes int64, soon bool) (freed int64) {
	done, err := s.makingRoom(ctx)
	if err != nil {
		return 0
	}
	defer done()
	before := int64(-1)
	goal := func() func(int64) int64 {
		return func(taken int64) int64 {
			if before < 0 {
				before = taken
			}
			freed = before - taken
			return bytes - freed
		}
	}
	if _, err := s.shrink(ctx, goal, soon, ""); err != nil && ctx.Err() == nil {
		s.cfg.Tell(Note{Kind: Problem, Text: err.Error()})
	}
	return freed
}

// makingRoom waits until nobody else in this process measures and makes room,
// so that one at a time pledges. done must be called.
func (s *Store) makingRoom(ctx context.Context) (done func(), err error) {
	select {
	case s.making <- struct{}{}:
		return func() { <-s.making }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
