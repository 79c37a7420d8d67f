package images

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Expect says what will be needed, in order, and pulls the first few of it
// ahead of those who will ask: one at a time, never while somebody waits for
// another pull, and only where there is room without removing what is needed
// sooner. What was expected and has not been asked for is removed last when
// room is needed. stop ends all that.
func (s *Store) Expect(ctx context.Context, needs []Need) (stop func()) {
	queue := make([]queued, 0, len(needs))
	for _, n := range needs {
		if name, err := Name(n.Ref); err == nil { // who needs it will hear of it
			queue = append(queue, queued{name: name, platform: n.Platform})
		}
	}
	s.change(func() { s.queue = queue })
	ctx, cancel := context.WithCancel(ctx)
	ending := context.WithoutCancel(ctx)
	var pulling sync.WaitGroup
	if s.cfg.Prefetch > 0 {
		pulling.Go(func() { s.pullAhead(ctx) })
	}
	return sync.OnceFunc(func() {
		cancel()
		pulling.Wait()
		s.change(func() {
			s.queue = nil
			clear(s.ahead)
		})
		ctx, cancel := context.WithTimeout(ending, giveBackTimeout)
		defer cancel()
		if err := s.lease(ctx, ""); err != nil {
			s.cfg.Tell(Note{Kind: Problem, Text: err.Error()})
		}
	})
}

// pullAhead works until ctx ends. What fails is left to who needs it.
func (s *Store) pullAhead(ctx context.Context) {
	if err := s.lease(ctx, ""); err != nil && ctx.Err() == nil { // what is here already is to stay
		s.cfg.Tell(Note{Kind: Problem, Text: err.Error()})
	}
	done := map[string]bool{} // looked at; not again
	for ctx.Err() == nil {
		n, found, changed := s.nextAhead(done)
		if !found {
			if await(ctx, changed, time.Hour) != nil {
				return
			}
			continue
		}
		if _, here, err := s.find(ctx, n.Ref, n.Platform); here || err != nil {
			done[key(n.Ref, n.Platform)] = true
			continue
		}
		s.change(func() { s.ahead[n.Ref] = s.using[n.Ref] == 0 })
		err := s.pulls.Do(ctx, key(n.Ref, n.Platform), func(ctx context.Context) error { return s.fetch(ctx, n, n.Ref) })
		if err == nil || !errors.Is(err, errNotNow) {
			done[key(n.Ref, n.Platform)] = true
		}
		if err != nil {
			changed := s.look(func() { delete(s.ahead, n.Ref) })
			if errors.Is(err, errNotNow) && await(ctx, changed, 5*s.cfg.Poll) != nil {
				return
			}
		}
	}
}

// nextAhead is the first image of the next few that has not been looked at.
func (s *Store) nextAhead(done map[string]bool) (n Need, found bool, changed <-chan struct{}) {
	changed = s.look(func() {
		if len(s.wanted) > 0 {
			return
		}
		for _, q := range s.upcoming() {
			if !done[key(q.name, q.platform)] {
				n, found = Need{Ref: q.name, Platform: q.platform}, true
				return
			}
		}
	})
	return n, found, changed
}

// upcoming is the next few of the queue, each image once. Its caller holds the
// lock.
func (s *Store) upcoming() (next []queued) {
	window := map[string]bool{}
	for _, q := range s.queue {
		if len(window) >= s.cfg.Prefetch {
			break
		}
		if k := key(q.name, q.platform); !q.begun && !window[k] {
			window[k] = true
			next = append(next, q)
		}
	}
	return next
}
