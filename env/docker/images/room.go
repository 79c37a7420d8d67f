package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/go-units"

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
	err = s.ledger.with(ctx, func(r *record) (bool, error) {
		over := func(taken int64) int64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			m.busy = m.busy || s.pledged > 0
			return taken + s.pledged + bytes - s.cfg.Budget
		}
		list, taken, changed, err := s.shrink(ctx, r, over, urgent, "")
		if err != nil {
			return changed, err
		}
		m.taken, m.fits = taken, over(taken) <= 0
		others, _ := r.leased(s.host, time.Now())
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, o := range list {
			m.busy = m.busy || o.InUse || s.holds(o) || slices.ContainsFunc(o.refs, func(ref string) bool { return others[ref] })
		}
		if m.fits {
			s.pledged += bytes
		}
		return changed, nil
	})
	return m, err
}

// fits holds an image that has arrived against the budget: now it is known what
// it takes. Where others are in use it may stay all the same until they are not.
func (s *Store) fits(ctx context.Context, n Need, name string, img Image) error {
	if s.cfg.Budget == 0 {
		return nil
	}
	return s.ledger.with(ctx, func(r *record) (bool, error) {
		over := func(taken int64) int64 { return taken - s.cfg.Budget }
		_, taken, changed, err := s.shrink(ctx, r, over, true, name)
		if err != nil || over(taken) <= 0 {
			return changed, err
		}
		if img.Size <= s.cfg.Budget {
			s.mu.Lock()
			s.over = true
			s.mu.Unlock()
			return changed, nil
		}
		if err := s.engine.Remove(ctx, name); err == nil {
			delete(r.Pulled, name)
			s.forgetLayers()
		}
		return true, s.tooBig(n.Ref, size(img.Size))
	})
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
	return s.ledger.with(ctx, func(r *record) (bool, error) {
		over := func(taken int64) int64 { return taken - s.cfg.Budget }
		_, taken, changed, err := s.shrink(ctx, r, over, true, "")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = err == nil && over(taken) > 0
		return changed, err
	})
}

// makeRoom removes images of mini's for so many bytes, and says how many it
// got. soon takes also those that this run will need again.
func (s *Store) makeRoom(ctx context.Context, bytes int64, soon bool) (freed int64) {
	err := s.ledger.with(ctx, func(r *record) (bool, error) {
		before := int64(-1)
		over := func(taken int64) int64 {
			if before < 0 {
				before = taken
			}
			freed = before - taken
			return bytes - freed
		}
		_, _, changed, err := s.shrink(ctx, r, over, soon, "")
		return changed, err
	})
	if err != nil && ctx.Err() == nil {
		s.cfg.Tell(Note{Kind: Problem, Text: err.Error()})
	}
	return freed
}

// shrink removes images, those that are needed last first, until over says that
// what is left does not take too much, or nothing may be removed any more. Its
// caller holds the ledger. It returns what is left, and what that takes.
func (s *Store) shrink(
	ctx context.Context, r *record, over func(taken int64) int64, soon bool, spare string,
) (list []own, taken int64, changed bool, err error) {
	others, changed := r.leased(s.host, time.Now())
	refused := map[string]bool{}
	for {
		stock, err := s.engine.Stock(ctx, r.pulledID)
		if err != nil {
			return nil, 0, changed, err
		}
		changed = r.forget(stock) || changed
		list = r.ours(stock)
		taken = take(list)
		surplus := over(taken)
		removed := false
		for _, o := range s.removable(list, others, soon) {
			if surplus <= 0 {
				break
			}
			if refused[o.ID] || slices.Contains(o.refs, spare) {
				continue
			}
			refused[o.ID] = true // it is gone, or will not go
			if err := s.remove(ctx, r, o); err != nil {
				if !errors.Is(err, ErrInUse) {
					s.cfg.Tell(Note{Kind: Problem, Image: o.refs[0], Text: err.Error()})
				}
				continue
			}
			removed, changed = true, true
			surplus -= o.Size - o.Shared
			s.cfg.Tell(Note{Kind: Removed, Image: o.refs[0], Text: "removed to make room: " + size(o.Size-o.Shared)})
		}
		if !removed {
			return list, taken, changed, nil
		}
		s.forgetLayers()
	}
}

// remove takes away every name that mini gave an image.
func (s *Store) remove(ctx context.Context, r *record, o own) error {
	for _, ref := range o.refs {
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

// forget drops what is not in the engine any more.
func (r *record) forget(stock Stock) (changed bool) {
	here := map[string]bool{}
	for _, h := range stock.Images {
		here[h.ID] = true
	}
	for name, p := range r.Pulled {
		if !here[p.ID] {
			delete(r.Pulled, name)
			changed = true
		}
	}
	return changed
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

// holds says that this process needs an image now. Its caller holds the lock.
func (s *Store) holds(o own) bool {
	return slices.ContainsFunc(o.refs, func(ref string) bool { return s.using[ref] > 0 })
}

// removable are the images that may go, the least needed first: those this run
// will not need, by when they were used last, then with soon those it will
// need, the latest first.
func (s *Store) removable(list []own, others map[string]bool, soon bool) []own {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]int{} // name -> how many come before it, and 1
	for i, q := range s.queue {
		if _, sooner := next[q.name]; !sooner && !q.begun {
			next[q.name] = i + 1
		}
	}
	needed := func(o own) (first int) {
		for _, ref := range o.refs {
			if n := next[ref]; n > 0 && (first == 0 || n < first) {
				first = n
			}
		}
		return first
	}
	var can []own
	for _, o := range list {
		taken := o.InUse || s.holds(o) || slices.ContainsFunc(o.refs, func(ref string) bool { return others[ref] })
		if !taken && (soon || needed(o) == 0) {
			can = append(can, o)
		}
	}
	slices.SortStableFunc(can, func(a, b own) int { // they come by their last use
		x, y := needed(a), needed(b)
		if x == 0 || y == 0 {
			return x - y
		}
		return y - x
	})
	return can
}

// size is a number of bytes as disks are sold.
func size(n int64) string {
	return units.CustomSize("%.3g %s", float64(n), 1000, []string{"B", "kB", "MB", "GB", "TB", "PB"})
}
