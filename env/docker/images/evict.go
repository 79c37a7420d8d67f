package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/go-units"
)

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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken, s.hasTaken = v.taken, err == nil
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
		if made := (a.of != ""); made != (b.of != "") { // what can be made again costs least
			if made {
				return -1
			}
			return 1
		}
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
