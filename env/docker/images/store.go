package images

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/flight"
)

// Store looks after the images of one engine. Its methods are safe for
// concurrent use; a batch shares one.
type Store struct {
	engine  Engine
	host    Host
	cfg     Config
	memory  *memory
	pulls   flight.Group
	limiter *rate.Limiter // nil where nothing bounds pulls
	making  chan struct{} // full while one measures and makes room
	moved   chan struct{} // of capacity one: the queue has moved on

	mu      sync.Mutex
	using   map[string]int  // sandboxes that need an image now
	queue   []queued        // what will be needed, in order
	pledged int64           // bytes that pulls under way will need
	layers  map[string]bool // content of layers that is here
	over    bool            // the budget is passed: all was in use
	taken   int64           // bytes of what mini pulled, as measured last; below 0 for never
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
	m, err := newMemory(c.Dir, h.ID)
	if err != nil {
		return nil, err
	}
	s := &Store{
		engine: e, host: h, cfg: c.withDefaults(), memory: m,
		making: make(chan struct{}, 1), moved: make(chan struct{}, 1),
		using: map[string]int{}, layers: map[string]bool{}, taken: -1,
	}
	if c.PullsPerMinute > 0 {
		s.limiter = rate.NewLimiter(rate.Limit(c.PullsPerMinute/60), 1)
	}
	return s, nil
}

// sleep returns after d, or with the cause when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
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
	// The note comes before the look: another mini may be about to remove it.
	if err := s.use(ctx, name, s.host.Owner); err != nil {
		return Image{}, nil, err
	}
	if err := s.awaitRoom(ctx, n, 0, false); err != nil {
		return Image{}, nil, err
	}
	for {
		img, here, err := s.find(ctx, name, n.Platform)
		if err != nil || here {
			return img, done, err
		}
		err = s.pulls.Do(ctx, key(name, n.Platform), func(ctx context.Context) error { return s.fetch(ctx, n, name, false) })
		if err != nil && !errors.Is(err, errNotNow) { // a pull ahead of its time may give up
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
		Hint: "mini remembers the images it pulled in " + s.memory.path + ", which it must be able to read, write and lock",
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		e.Status, e.Hint = env.HostDiskFull, "make room on the disk of "+s.memory.path
	}
	return e
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.using[name]++
	for i, q := range s.queue {
		if !q.begun && q.name == name && q.platform == platform {
			s.queue[i].begun = true
			break
		}
	}
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// giveBackTimeout bounds what is done when something is not needed any more.
const giveBackTimeout = 30 * time.Second

// release notes that a sandbox is gone, and makes room that was lacking.
func (s *Store) release(ctx context.Context, name string) {
	s.mu.Lock()
	user := s.host.Owner
	if s.using[name]--; s.using[name] == 0 {
		delete(s.using, name)
		user = ""
	}
	over := s.over
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, giveBackTimeout)
	defer cancel()
	err := s.use(ctx, name, user)
	if err == nil && over {
		err = s.fits(ctx, nil)
	}
	if err != nil {
		s.cfg.Tell(Note{Kind: Problem, Image: name, Text: err.Error()})
	}
}

// use writes down who needs an image that mini pulled, for other minis to see.
func (s *Store) use(ctx context.Context, name, user string) error {
	return s.memory.with(ctx, func(r *record) (bool, error) {
		p, mine := r.Pulled[name]
		if mine {
			p.Used, p.User = time.Now(), user
			r.Pulled[name] = p
		}
		return mine, nil
	})
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
	s.mu.Lock()
	s.using[name]++
	s.mu.Unlock()
	done := sync.OnceFunc(func() { s.release(context.WithoutCancel(ctx), name) })
	if err := s.use(ctx, name, s.host.Owner); err != nil {
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
	return s.arrived(ctx, Need{Ref: name}, name, of)
}

// Expect says what will be needed, in order, and pulls the first few of it
// ahead of those who will ask: one at a time, and only where there is room without
// removing what is needed sooner. What was expected and has not been asked for is
// removed last when room is needed. stop ends all that.
func (s *Store) Expect(ctx context.Context, needs []Need) (stop func()) {
	queue := make([]queued, 0, len(needs))
	for _, n := range needs {
		if name, err := Name(n.Ref); err == nil { // who needs it will hear of it
			queue = append(queue, queued{name: name, platform: n.Platform})
		}
	}
	s.setQueue(queue)
	ctx, cancel := context.WithCancel(ctx)
	var pulling sync.WaitGroup
	if s.cfg.Prefetch > 0 {
		pulling.Go(func() { s.pullAhead(ctx) })
	}
	return sync.OnceFunc(func() {
		cancel()
		pulling.Wait()
		s.setQueue(nil)
	})
}

func (s *Store) setQueue(queue []queued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
}

// pullAhead works until ctx ends. What fails is left to who needs it.
func (s *Store) pullAhead(ctx context.Context) {
	done := map[string]bool{} // looked at; not again
	for ctx.Err() == nil {
		n, found := s.nextAhead(done)
		if !found {
			select {
			case <-ctx.Done():
			case <-s.moved:
			}
			continue
		}
		_, here, err := s.find(ctx, n.Ref, n.Platform)
		if !here && err == nil {
			err = s.pulls.Do(ctx, key(n.Ref, n.Platform), func(ctx context.Context) error { return s.fetch(ctx, n, n.Ref, true) })
		}
		if errors.Is(err, errNotNow) {
			_ = sleep(ctx, 5*s.cfg.Poll) // the loop sees the end of ctx
		} else {
			done[key(n.Ref, n.Platform)] = true
		}
	}
}

// nextAhead is the first image of the next few that has not been looked at.
func (s *Store) nextAhead(done map[string]bool) (n Need, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	window := map[string]bool{}
	for _, q := range s.queue {
		k := key(q.name, q.platform)
		if q.begun || window[k] {
			continue
		}
		if window[k] = true; len(window) > s.cfg.Prefetch {
			break
		}
		if !done[k] {
			return Need{Ref: q.name, Platform: q.platform}, true
		}
	}
	return n, false
}

// Standing is how much room there is, in bytes.
type Standing struct {
	Free  int64 // on the engine's disk
	Known bool  // that can be measured from here
	// Budget is the bound of what mini pulled, 0 where there is none, and Taken what
	// that took when it was last measured; below 0 where it never was.
	Budget, Taken int64
}

// Standing looks at the disk, and asks nobody.
func (s *Store) Standing() Standing {
	st := Standing{Budget: s.cfg.Budget}
	if s.host.Free != nil {
		st.Free, st.Known = s.host.Free()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Taken = s.taken
	return st
}
