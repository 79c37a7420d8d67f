package images

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/go-units"

	"github.com/minibench/mini/env"
)

// awaitRoom waits until the engine's disk has its floor free, and so many
// bytes more. What mini pulled and will not need any more goes first. Who is ahead
// of his time does not wait.
func (s *Store) awaitRoom(ctx context.Context, n Need, bytes int64, ahead bool) error {
	want := s.cfg.MinFree + bytes
	return s.await(ctx, n, ahead, func() (there, hope bool, why error) {
		if s.cfg.MinFree == 0 || s.host.Free == nil {
			return true, true, nil
		}
		free, known := s.host.Free()
		for known && free < want && !ahead && s.makeRoom(ctx, want-free) {
			free, known = s.host.Free()
		}
		if !known || free >= want {
			return true, true, nil
		}
		return false, true, &env.Error{Status: env.HostDiskFull, Op: "make room for " + n.Ref, Err: fmt.Errorf(
			"%s are free on the engine's disk, and run.min_free_disk with this image wants %s; "+
				"remove what is not needed there (docker system df shows it), or stop mini with Ctrl-C", size(free), size(want))}
	})
}

// await asks until there is room, and tells of the wait. why is the error where
// nobody waits, or there is no hope.
func (s *Store) await(ctx context.Context, n Need, ahead bool, ask func() (there, hope bool, why error)) error {
	for told := false; ; told = true {
		there, hope, why := ask()
		switch e, _ := errors.AsType[*env.Error](why); {
		case there && told:
			s.cfg.Tell(Note{Kind: Resumed, Image: n.Ref, For: n.For, Text: "there is room again"})
			return nil
		case there:
			return nil
		case e == nil:
			return why
		case ahead:
			return errNotNow
		case s.cfg.NoWait, !hope:
			return why
		case !told:
			s.cfg.Tell(Note{Kind: Room, Image: n.Ref, For: n.For, Text: "waiting: " + e.Err.Error()})
		}
		if err := sleep(ctx, s.cfg.Poll); err != nil {
			return err
		}
	}
}

// awaitBudget waits until an image fits the budget, and pledges room to it
// until unpledge is called. whole is what all of it takes at least, and bytes
// the part that is not here yet.
func (s *Store) awaitBudget(ctx context.Context, n Need, whole, bytes int64, ahead bool) (unpledge func(), err error) {
	if s.cfg.Budget == 0 {
		return func() {}, nil
	}
	if whole > s.cfg.Budget {
		return nil, s.tooBig(n.Ref, "at least "+size(whole))
	}
	err = s.await(ctx, n, ahead, func() (there, hope bool, why error) {
		left, err := s.shrink(ctx, !ahead, func(taken int64) int64 { return taken + s.pledge(0) + bytes - s.cfg.Budget }, func(fits bool) {
			if fits {
				s.pledge(bytes)
			}
		})
		if err != nil || left.surplus <= 0 {
			return err == nil, false, err
		}
		return false, s.mayShrink(left), &env.Error{
			Status: env.PullFailed, Op: "pull image " + n.Ref, Hint: "give more with --image-budget, or see mini images prune",
			Err: fmt.Errorf("the images that mini pulled take %s of the budget of %s, and those in use stay", size(left.taken), size(s.cfg.Budget)),
		}
	})
	return func() { s.pledge(-bytes) }, err
}

// mayShrink says that something in use may be given back.
func (s *Store) mayShrink(v inventory) bool {
	return s.pledge(0) > 0 || slices.ContainsFunc(v.list, func(o own) bool {
		now, _ := s.needs(o)
		return now || o.InUse || v.record.usedByOthers(o, s.host)
	})
}

// pledge adds to what pulls under way will need, and returns it.
func (s *Store) pledge(bytes int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pledged += bytes
	return s.pledged
}

func (s *Store) tooBig(ref, takes string) error {
	return &env.Error{
		Status: env.PullFailed, Op: "pull image " + ref,
		Err:  fmt.Errorf("it takes %s, more than the budget of %s", takes, size(s.cfg.Budget)),
		Hint: "give more with --image-budget (run.image_budget)",
	}
}

// fits removes what is over the budget, but for one image that has just come.
// Where the rest is in use, that is tried again when it is given back.
func (s *Store) fits(ctx context.Context, spare *string) error {
	if spare != nil {
		s.mu.Lock()
		s.using[*spare]++
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.using[*spare]--; s.using[*spare] == 0 {
				delete(s.using, *spare)
			}
		}()
	}
	left, err := s.shrink(ctx, true, func(taken int64) int64 { return taken - s.cfg.Budget }, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = err != nil || left.surplus > 0
	return err
}

// makeRoom removes images of mini's for so many bytes, and says whether any went.
func (s *Store) makeRoom(ctx context.Context, bytes int64) bool {
	before := int64(-1)
	left, err := s.shrink(ctx, false, func(taken int64) int64 {
		if before < 0 {
			before = taken
		}
		return bytes - (before - taken)
	}, nil)
	if err != nil && ctx.Err() == nil {
		s.cfg.Tell(Note{Kind: Problem, Text: err.Error()})
	}
	return err == nil && left.taken < before
}

// inventory is what mini pulled and the engine has, as it was measured.
type inventory struct {
	stock   Stock
	list    []own
	record  record
	taken   int64 // bytes, by the list
	surplus int64 // of them that should go; 0 or less for none
}

// measure asks the engine, which may take minutes: nothing is locked meanwhile.
func (s *Store) measure(ctx context.Context) (v inventory, err error) {
	before, err := s.memory.look(ctx)
	if err != nil {
		return v, err
	}
	if v.stock, err = s.engine.Stock(ctx, before.pulledID); err != nil {
		return v, err
	}
	err = s.memory.with(ctx, func(r *record) (bool, error) {
		v.record = *r
		return r.forget(v.stock, before), nil
	})
	v.list = before.ours(v.stock)
	v.taken = take(v.list)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = v.taken
	return v, err
}

// shrink removes images, those that were used longest ago first, until surplus says
// that what is left does not take too much, or nothing may be removed any more. With
// soon it takes also those that this run will need again, last of all. One at a time
// does so in this process; before the next one may, then is told whether it
// succeeded. It returns what is left.
func (s *Store) shrink(
	ctx context.Context, soon bool, surplus func(taken int64) int64, then func(fits bool),
) (inventory, error) {
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
	case <-ctx.Done():
		return inventory{}, context.Cause(ctx)
	}
	tried := map[string]bool{} // it is gone, or will not go
	for {
		left, err := s.measure(ctx)
		if err != nil {
			return left, err
		}
		left.surplus = surplus(left.taken)
		removed := false
		for over := left.surplus; over > 0; {
			o, found := s.leastNeeded(left, soon, tried)
			if !found {
				break
			}
			tried[o.ID] = true
			switch err := s.remove(ctx, o, soon); {
			case err == nil:
				removed = true
				over -= o.Size - o.Shared
				s.cfg.Tell(Note{Kind: Removed, Image: o.refs[0], Text: "removed to make room: " + size(o.Size-o.Shared)})
			case !errors.Is(err, ErrInUse):
				s.cfg.Tell(Note{Kind: Problem, Image: o.refs[0], Text: err.Error()})
			}
		}
		if removed {
			s.forgetLayers()
			continue
		}
		if then != nil {
			then(left.surplus <= 0)
		}
		return left, nil
	}
}

// leastNeeded is the image that may go before all others: first what can be made
// again, then what this run will not need, then what was used longest ago.
func (s *Store) leastNeeded(v inventory, soon bool, tried map[string]bool) (least own, found bool) {
	best := 0
	for _, o := range v.list { // by their last use
		if tried[o.ID] || o.InUse || v.record.usedByOthers(o, s.host) {
			continue
		}
		now, later := s.needs(o)
		if now || later && !soon {
			continue
		}
		rank := 1
		if later {
			rank = 2
		}
		if o.of != "" {
			rank = 0
		}
		if !found || rank < best {
			least, best, found = o, rank, true
		}
	}
	return least, found
}

// needs says whether this process needs an image now, or later.
func (s *Store) needs(o own) (now, later bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = slices.ContainsFunc(o.refs, func(ref string) bool { return s.using[ref] > 0 })
	later = slices.ContainsFunc(s.queue, func(q queued) bool { return !q.begun && slices.Contains(o.refs, q.name) })
	return now, later
}

// remove takes an image away that was measured, if it is still as it was then
// and still nobody needs it. Who comes to need it waits for the lock.
func (s *Store) remove(ctx context.Context, o own, soon bool) error {
	return s.memory.with(ctx, func(r *record) (bool, error) {
		if now, later := s.needs(o); now || later && !soon || r.usedByOthers(o, s.host) {
			return false, ErrInUse
		}
		return true, s.removeNow(ctx, r, o)
	})
}

// errMoved says that a name means another image than it did.
var errMoved = fmt.Errorf("%w: its name has got another image", ErrInUse)

// removeNow takes away every name that mini gave an image. Its caller holds the
// lock of the memory.
func (s *Store) removeNow(ctx context.Context, r *record, o own) error {
	for _, ref := range o.refs {
		img, here, err := s.engine.Find(ctx, ref, "")
		if err != nil {
			return err
		}
		if r.Pulled[ref].ID != o.ID || here && img.ID != o.ID {
			return errMoved
		}
		if err := s.engine.Remove(ctx, ref); err != nil {
			return err
		}
		delete(r.Pulled, ref)
	}
	return nil
}

// forgetLayers is for after a removal: what is here now is not known.
func (s *Store) forgetLayers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.layers)
}

// take is how much room some images take, in bytes: what several of them are
// made of is counted once, and also where images of others have it too.
func take(list []own) (bytes int64) {
	seen := map[string]bool{}
	for _, o := range list {
		if len(o.Parts) == 0 {
			bytes += o.Size
		}
		for _, p := range o.Parts {
			if !seen[p.Key] {
				seen[p.Key] = true
				bytes += p.Bytes
			}
		}
	}
	return bytes
}

// size is a number of bytes as disks are sold.
func size(n int64) string {
	return units.CustomSize("%.3g %s", float64(n), 1000, []string{"B", "kB", "MB", "GB", "TB", "PB"})
}
