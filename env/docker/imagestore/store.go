package imagestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/singleflight"
)

// Store manages the images of one engine. Its methods are safe for concurrent use;
// all attempts of a run share it.
type Store struct {
	engine       Engine
	host         EngineInfo
	cfg          Config
	stateFile    *stateFile
	pulls        singleflight.Group
	limiter      *rate.Limiter // nil without Config.PullsPerMinute
	shrinking    chan struct{} // semaphore of shrink
	queueChanged chan struct{} // buffered: wakes runPrefetch

	mu         sync.Mutex
	inUse      map[string]int  // number of leases per name
	queue      []queuedImage   // images needed later, in order
	layers     map[string]bool // diff ids of present layers
	overBudget bool            // the budget is exceeded because all images are in use
	used       int64           // bytes of the images that mini pulled, as last measured; -1 before
}

// queuedImage is an image needed later.
type queuedImage struct {
	name, platform string
	started        bool // Ensure was called for it
}

// New returns a store. It does not write the state file before the first pull.
func New(e Engine, h EngineInfo, c Config) (*Store, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("open image store: %w", err)
	}
	m, err := openStateFile(c.Dir, h.ID)
	if err != nil {
		return nil, err
	}
	s := &Store{
		engine: e, host: h, cfg: c.withDefaults(), stateFile: m,
		shrinking: make(chan struct{}, 1), queueChanged: make(chan struct{}, 1),
		inUse: map[string]int{}, layers: map[string]bool{}, used: -1,
	}
	if c.PullsPerMinute > 0 {
		s.limiter = rate.NewLimiter(rate.Limit(c.PullsPerMinute/60), 1)
	}
	return s, nil
}

// sleep returns after d, or with the cause of ctx.
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

// pullKey identifies a pull.
func pullKey(name, platform string) string { return name + " " + platform }

// Ensure makes the engine have an image and keeps it until release is called, which
// is safe to call more than once. It waits while the engine's disk has no space for
// another sandbox. The error is an *env.Error, or the cause of ctx.
func (s *Store) Ensure(ctx context.Context, n Request) (img Image, release func(), err error) {
	name, err := NormalizeName(n.Ref)
	if err != nil {
		return Image{}, nil, err
	}
	s.markInUse(name, n.Platform)
	done := sync.OnceFunc(func() { s.release(context.WithoutCancel(ctx), name) })
	defer func() {
		if err != nil {
			err = s.wrapError(ctx, n, err)
			done()
		}
	}()
	// Record the use before looking: another process may be about to remove the image.
	if err := s.recordUser(ctx, name, s.host.Owner); err != nil {
		return Image{}, nil, err
	}
	if err := s.waitForDisk(ctx, n, 0, false); err != nil {
		return Image{}, nil, err
	}
	for {
		img, here, err := s.find(ctx, name, n.Platform)
		if err != nil || here {
			return img, done, err
		}
		err = s.pulls.Do(ctx, pullKey(name, n.Platform), func(ctx context.Context) error { return s.pullWithRetry(ctx, n, name, false) })
		if err != nil && !errors.Is(err, errPrefetchSkipped) { // after a skipped prefetch, pull again
			return Image{}, nil, err
		}
	}
}

// wrapError returns an *env.Error with a hint for an error of the state file: a
// problem of this machine, not of the attempt.
func (s *Store) wrapError(ctx context.Context, n Request, err error) error {
	if _, named := errors.AsType[*env.Error](err); named || ctx.Err() != nil {
		return err
	}
	e := &env.Error{
		Status: env.StartFailed, Op: "prepare image " + n.Ref, Err: err,
		Hint: "check that mini can read, write and lock " + s.stateFile.path + ", the list of images that it pulled",
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		e.Status, e.Hint = env.HostDiskFull, "free space on the disk of "+s.stateFile.path
	}
	return e
}

// find looks up an image in the engine and records its layers.
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

// markInUse records that a sandbox uses an image.
func (s *Store) markInUse(name, platform string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse[name]++
	for i, q := range s.queue {
		if !q.started && q.name == name && q.platform == platform {
			s.queue[i].started = true
			break
		}
	}
	select {
	case s.queueChanged <- struct{}{}:
	default:
	}
}

// releaseTimeout limits the work of release.
const releaseTimeout = 30 * time.Second

// release records that a sandbox ended, and enforces the budget if it was exceeded.
func (s *Store) release(ctx context.Context, name string) {
	s.mu.Lock()
	user := s.host.Owner
	if s.inUse[name]--; s.inUse[name] == 0 {
		delete(s.inUse, name)
		user = ""
	}
	overBudget := s.overBudget
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	err := s.recordUser(ctx, name, user)
	if err == nil && overBudget {
		err = s.enforceBudget(ctx)
	}
	if err != nil {
		s.cfg.Notify(Event{Kind: Warning, Image: name, Text: err.Error()})
	}
}

// recordUser writes the user of a pulled image to the state file, for other processes.
func (s *Store) recordUser(ctx context.Context, name, user string) error {
	return s.stateFile.update(ctx, func(r *state) (bool, error) {
		p, ok := r.Pulled[name]
		if ok {
			p.Used, p.User = time.Now(), user
			r.Pulled[name] = p
		}
		return ok, nil
	})
}

// Lookup returns an image if the engine has it. It does not pull.
func (s *Store) Lookup(ctx context.Context, n Request) (Image, bool, error) {
	name, err := NormalizeName(n.Ref)
	if err != nil {
		return Image{}, false, err
	}
	return s.find(ctx, name, n.Platform)
}

// Lease keeps an image from being removed until release is called, which is safe to
// call more than once. It pulls nothing and waits only for the file lock.
func (s *Store) Lease(ctx context.Context, n Request) (release func(), err error) {
	name, err := NormalizeName(n.Ref)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.inUse[name]++
	s.mu.Unlock()
	done := sync.OnceFunc(func() { s.release(context.WithoutCancel(ctx), name) })
	if err := s.recordUser(ctx, name, s.host.Owner); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// AddBuilt records that mini built an image from another one. Such images count
// towards the budget and are removed before pulled ones. The error says that the
// image exceeded the budget and was removed.
func (s *Store) AddBuilt(ctx context.Context, name, of string) error {
	name, err := NormalizeName(name)
	if err != nil {
		return err
	}
	if of, err = NormalizeName(of); err != nil {
		return err
	}
	return s.recordImage(ctx, Request{Ref: name}, name, of)
}

// Prefetch sets the images needed later, in order, and pulls the first few in
// advance. It pulls one at a time, and only if that needs no removal of images
// needed sooner. Images in this list are removed last. stop ends the prefetch and
// clears the list.
func (s *Store) Prefetch(ctx context.Context, needs []Request) (stop func()) {
	queue := make([]queuedImage, 0, len(needs))
	for _, n := range needs {
		if name, err := NormalizeName(n.Ref); err == nil { // Ensure reports invalid names
			queue = append(queue, queuedImage{name: name, platform: n.Platform})
		}
	}
	s.setQueue(queue)
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	if s.cfg.Prefetch > 0 {
		workers.Go(func() { s.runPrefetch(ctx) })
	}
	return sync.OnceFunc(func() {
		cancel()
		workers.Wait()
		s.setQueue(nil)
	})
}

func (s *Store) setQueue(queue []queuedImage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
}

// runPrefetch runs until ctx ends. It ignores errors; Ensure reports them.
func (s *Store) runPrefetch(ctx context.Context) {
	done := map[string]bool{} // present, pulled or failed
	for ctx.Err() == nil {
		n, found := s.nextPrefetch(done)
		if !found {
			select {
			case <-ctx.Done():
			case <-s.queueChanged:
			}
			continue
		}
		_, here, err := s.find(ctx, n.Ref, n.Platform)
		if !here && err == nil {
			err = s.pulls.Do(ctx, pullKey(n.Ref, n.Platform), func(ctx context.Context) error { return s.pullWithRetry(ctx, n, n.Ref, true) })
		}
		if errors.Is(err, errPrefetchSkipped) {
			_ = sleep(ctx, 5*s.cfg.PollInterval) // the loop sees the end of ctx
		} else {
			done[pullKey(n.Ref, n.Platform)] = true
		}
	}
}

// nextPrefetch returns the first of the next few images that is not in done.
func (s *Store) nextPrefetch(done map[string]bool) (n Request, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	window := map[string]bool{}
	for _, q := range s.queue {
		k := pullKey(q.name, q.platform)
		if q.started || window[k] {
			continue
		}
		if window[k] = true; len(window) > s.cfg.Prefetch {
			break
		}
		if !done[k] {
			return Request{Ref: q.name, Platform: q.platform}, true
		}
	}
	return n, false
}

// Status is the space that a store has and uses, in bytes.
type Status struct {
	Free      int64 // free on the engine's disk
	FreeKnown bool  // Free is valid
	// Budget is the limit for the images that mini pulled; 0 means none. Used is
	// their size as last measured; -1 if never measured.
	Budget, Used int64
}

// Status measures the free space of the disk, but does not ask the engine.
func (s *Store) Status() Status {
	st := Status{Budget: s.cfg.Budget}
	if s.host.FreeDisk != nil {
		st.Free, st.FreeKnown = s.host.FreeDisk()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Used = s.used
	return st
}
