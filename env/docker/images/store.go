package images

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/flight"
)

// Store looks after the images of one engine. Its methods are safe for
// concurrent use; a batch shares one.
type Store struct {
	engine Engine
	host   Host
	cfg    Config
	ledger *ledger
	pulls  flight.Group
	turns  *turns
	making chan struct{} // full while one measures and makes room

	mu      sync.Mutex
	changed chan struct{}   // closed, and made anew, whenever something below changes
	using   map[string]int  // sandboxes that need an image now
	wanted  map[string]int  // callers of Ensure that wait for an image, by key
	ahead   map[string]bool // pulled for later
	queue   []queued        // what will be needed, in order
	pledged int64           // bytes that pulls under way will need
	layers  map[string]bool // content of layers that is here
	told    map[string]bool // notes about waiting, while they last
	over    bool            // the budget is passed: all was in use
	taken   int64           // bytes of what mini pulled, as measured last

	hasTaken bool // it was
}

// queued is one need of the future.
type queued struct {
	name, platform string
	begun          bool // who needs it has come for it
}

// New returns a store. It writes nothing before something is pulled.
func New(e Engine, h Host, c Config) (*Store, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("look after images: %w", err)
	}
	l, err := newLedger(c.Dir, h.ID)
	if err != nil {
		return nil, err
	}
	s := &Store{
		engine: e, host: h, cfg: c.withDefaults(), ledger: l,
		changed: make(chan struct{}), making: make(chan struct{}, 1),
		using: map[string]int{}, wanted: map[string]int{}, ahead: map[string]bool{},
		layers: map[string]bool{}, told: map[string]bool{},
	}
	s.turns = newTurns(c.PullsPerMinute)
	return s, nil
}

// change does something under the lock, and wakes all who wait.
func (s *Store) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// look does something under the lock and returns what will be closed at the
// next change.
func (s *Store) look(f func()) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	return s.changed
}

// await returns at a change, after d, or with the cause when ctx ends.
func await(ctx context.Context, changed <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-changed:
	case <-t.C:
	}
	return nil
}

// key tells pulls apart.
func key(name, platform string) string { return name + " " + platform }

// Ensure brings an image to the engine and keeps it there until release is
// called, which must happen once and may happen again. It waits while the
// engine's disk has no room for another sandbox. The error is an *env.Error,
// or the cause of ctx when that ended.
func (s *Store) Ensure(ctx context.Context, n Need) (img Image, release func(), err error) {
	name, err := Name(n.Ref)
	if err != nil {
		return Image{}, nil, err
	}
	s.begin(name, n.Platform)
	done := sync.OnceFunc(func() { s.release(context.WithoutCancel(ctx), name) })
	defer func() {
		if err != nil {
			err = s.loss(ctx, n, err)
			done()
		}
	}()
	// The lease comes before the look: another mini may be about to remove it.
	if err := s.lease(ctx, name); err != nil {
		return Image{}, nil, err
	}
	if err := s.awaitRoom(ctx, n, 0, func() bool { return true }); err != nil {
		return Image{}, nil, err
	}
	for {
		img, here, err := s.find(ctx, name, n.Platform)
		if err != nil || here {
			return img, done, err
		}
		err = s.pulled(ctx, n, name)
		if err != nil && !errors.Is(err, errNotNow) {
			return Image{}, nil, err
		}
	}
}

// loss is what a failure means to who needs an image. What has no name yet is
// trouble with the memory of images: that this machine has, and no attempt.
func (s *Store) loss(ctx context.Context, n Need, err error) error {
	if _, named := errors.AsType[*env.Error](err); named || ctx.Err() != nil {
		return err
	}
	e := &env.Error{
		Status: env.StartFailed, Op: "look after image " + n.Ref, Err: err,
		Hint: "mini remembers the images it pulled in " + s.ledger.path + ", which it must be able to read, write and lock",
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		e.Status, e.Hint = env.HostDiskFull, "make room on the disk of "+s.ledger.path
	}
	return e
}

// pulled waits for the pull of an image, which it may share with others.
func (s *Store) pulled(ctx context.Context, n Need, name string) error {
	k := key(name, n.Platform)
	s.change(func() { s.wanted[k]++ })
	defer s.change(func() {
		if s.wanted[k]--; s.wanted[k] == 0 {
			delete(s.wanted, k)
		}
	})
	return s.pulls.Do(ctx, k, func(ctx context.Context) error { return s.fetch(ctx, n, name) })
}

// urgent says that somebody waits for an image, who would else only be
// expected to.
func (s *Store) urgent(name, platform string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted[key(name, platform)] > 0
}

// find looks in the engine, and remembers which layers are there.
func (s *Store) find(ctx context.Context, name, platform string) (Image, bool, error) {
	img, here, err := s.engine.Find(ctx, name, platform)
	if here {
		s.mu.Lock()
		for _, content := range img.Layers {
			s.layers[content] = true
		}
		s.mu.Unlock()
	}
	return img, here, err
}

// begin notes that a sandbox needs an image from now on.
func (s *Store) begin(name, platform string) {
	s.change(func() {
		s.using[name]++
		delete(s.ahead, name)
		for i, q := range s.queue {
			if !q.begun && q.name == name && q.platform == platform {
				s.queue[i].begun = true
				break
			}
		}
	})
}

// giveBackTimeout bounds what is done when something is not needed any more.
const giveBackTimeout = 30 * time.Second

// release notes that a sandbox is gone, and makes room that was lacking.
func (s *Store) release(ctx context.Context, name string) {
	s.change(func() {
		if s.using[name]--; s.using[name] == 0 {
			delete(s.using, name)
		}
	})
	ctx, cancel := context.WithTimeout(ctx, giveBackTimeout)
	defer cancel()
	if err := errors.Join(s.lease(ctx, name), s.trim(ctx)); err != nil {
		s.cfg.Tell(Note{Kind: Problem, Image: name, Text: err.Error()})
	}
}

// lease writes down what this process needs, for other minis to see. That is
// also what mini has not pulled yet: another mini may be pulling it just now.
func (s *Store) lease(ctx context.Context, name string) error {
	return s.ledger.with(ctx, func(r *record) (bool, error) {
		p, mine := r.Pulled[name]
		if mine {
			p.Used = time.Now()
			r.Pulled[name] = p
		}
		return s.writeLease(r) || mine, nil
	})
}

// writeLease puts what is needed into the record, and says whether that
// changed it.
func (s *Store) writeLease(r *record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := lease{Seen: time.Now()}
	l.Refs = slices.AppendSeq(l.Refs, maps.Keys(s.using))
	for name, ahead := range s.ahead {
		if ahead {
			l.Refs = append(l.Refs, name)
		}
	}
	for _, q := range s.upcoming() {
		l.Refs = append(l.Refs, q.name)
	}
	slices.Sort(l.Refs)
	l.Refs = slices.Compact(l.Refs)
	if _, had := r.Leases[s.host.Owner]; len(l.Refs) == 0 && !had {
		return false
	}
	if len(l.Refs) == 0 {
		delete(r.Leases, s.host.Owner)
	} else {
		r.Leases[s.host.Owner] = l
	}
	return true
}

// tellOnce tells of a wait when it begins, and again when it is over.
func (s *Store) tellOnce(n Note) {
	k := n.Image + "\n" + n.For
	s.mu.Lock()
	had := s.told[k]
	if n.Kind == Resumed {
		delete(s.told, k)
	} else {
		s.told[k] = true
	}
	s.mu.Unlock()
	if had == (n.Kind == Resumed) {
		s.cfg.Tell(n)
	}
}

// Here says whether the engine has an image, and pulls nothing.
func (s *Store) Here(ctx context.Context, n Need) (bool, error) {
	_, here, err := s.Look(ctx, n)
	return here, err
}

// Look finds an image that the engine has; false where it would have to be
// pulled, which it is not.
func (s *Store) Look(ctx context.Context, n Need) (Image, bool, error) {
	name, err := Name(n.Ref)
	if err != nil {
		return Image{}, false, err
	}
	return s.find(ctx, name, n.Platform)
}

// Hold keeps an image from being removed for want of room until release is
// called, which may happen more than once: somebody will need it again. It
// pulls nothing, and waits for nothing but other minis' notes.
func (s *Store) Hold(ctx context.Context, n Need) (release func(), err error) {
	name, err := Name(n.Ref)
	if err != nil {
		return nil, err
	}
	s.change(func() { s.using[name]++ })
	done := sync.OnceFunc(func() { s.release(context.WithoutCancel(ctx), name) })
	if err := s.lease(ctx, name); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// Made notes that mini made an image of another one, and holds it against the
// budget: it is removed as those that mini pulled are, but sooner. The error says
// that it does not fit, and is gone.
func (s *Store) Made(ctx context.Context, name, of string) error {
	name, err := Name(name)
	if err != nil {
		return err
	}
	if of, err = Name(of); err != nil {
		return err
	}
	img, here, err := s.find(ctx, name, "")
	if err != nil || !here {
		return err
	}
	err = s.ledger.with(ctx, func(r *record) (bool, error) {
		r.remember(name, img, time.Now())
		made := r.Pulled[name]
		made.Of = of
		r.Pulled[name] = made
		s.writeLease(r)
		return true, nil
	})
	if err != nil {
		return err
	}
	return s.fits(ctx, Need{Ref: name}, name, img)
}
