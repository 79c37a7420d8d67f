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

// inventory is what mini pulled and the engine has, as it was measured.
type inventory struct {
	stock   Stock
	list    []own
	others  map[string]bool // names that other minis need
	taken   int64           // bytes, by the list
	surplus int64           // of them that should go; 0 or less for none
}

// measure asks the engine, which may take minutes: nothing is locked meanwhile.
func (s *Store) measure(ctx context.Context) (v inventory, err error) {
	before, err := s.ledger.look(ctx)
	if err != nil {
		return v, err
	}
	if v.stock, err = s.engine.Stock(ctx, before.pulledID); err != nil {
		return v, err
	}
	err = s.ledger.with(ctx, func(r *record) (changed bool, err error) {
		v.others, changed = r.leased(s.host, time.Now())
		return r.forget(v.stock, before) || changed, nil
	})
	v.list = before.ours(v.stock)
	v.taken = take(v.list)
	return v, err
}

// shrink removes images, those that are needed last first, until goal says that
// what is left does not take too much, or nothing may be removed any more. goal
// is asked before each measurement, and its answer says of what was measured how
// much is too much. Its caller is makingRoom. It returns what is left.
func (s *Store) shrink(
	ctx context.Context, goal func() func(taken int64) (surplus int64), soon bool, spare string,
) (inventory, error) {
	refused := map[string]bool{}
	for {
		over := goal()
		left, err := s.measure(ctx)
		if err != nil {
			return left, err
		}
		left.surplus = over(left.taken)
		surplus, removed := left.surplus, false
		for _, o := range s.removable(left.list, left.others, soon) {
			if surplus <= 0 {
				break
			}
			if refused[o.ID] || slices.Contains(o.refs, spare) {
				continue
			}
			refused[o.ID] = true // it is gone, or will not go
			gone, err := s.remove(ctx, o, soon)
			if err != nil {
				s.cfg.Tell(Note{Kind: Problem, Image: o.refs[0], Text: err.Error()})
			}
			if !gone {
				continue
			}
			removed = true
			surplus -= o.Size - o.Shared
			s.cfg.Tell(Note{Kind: Removed, Image: o.refs[0], Text: "removed to make room: " + size(o.Size-o.Shared)})
		}
		if !removed {
			return left, nil
		}
		s.forgetLayers()
	}
}

// remove takes an image away that was measured, if it is still as it was then
// and still nobody needs it. Who comes to need it waits for the lock.
func (s *Store) remove(ctx context.Context, o own, soon bool) (gone bool, err error) {
	err = s.ledger.with(ctx, func(r *record) (bool, error) {
		others, changed := r.leased(s.host, time.Now())
		if len(s.removable([]own{o}, others, soon)) == 0 {
			return changed, nil
		}
		err := s.removeNow(ctx, r, o)
		if errors.Is(err, ErrInUse) {
			return true, nil
		}
		gone = err == nil
		return true, err
	})
	return gone, err
}

// errMoved says that a name means another image than it did.
var errMoved = fmt.Errorf("%w: its name has got another image", ErrInUse)

// removeNow takes away every name that mini gave an image. Its caller holds the
// ledger.
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

// forget drops what was known before the engine was measured, and was not there.
func (r *record) forget(stock Stock, before record) (changed bool) {
	here := map[string]bool{}
	for _, h := range stock.Images {
		here[h.ID] = true
	}
	for name, p := range r.Pulled {
		if old := before.Pulled[name]; !here[p.ID] && old.ID == p.ID && old.Pulled.Equal(p.Pulled) {
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
		taken := o.InUse || s.holds(o) || o.is(others)
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
