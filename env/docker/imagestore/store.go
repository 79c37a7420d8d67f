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
	overBudget bool            // the last enforceBudget could not remove enough images
	used       int64           // bytes of the images that mini pulled, as last measured; -1 before
}

// queuedImage is an image needed later.
type queuedImage struct {
	name, platform string
	started        bool // Ensure was called for it
}

// New returns a store. It does not write the state file before the first pull.
func New(engine Engine, info EngineInfo, cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("open image store: %w", err)
	}
	sf, err := openStateFile(cfg.Dir, info.ID)
	if err != nil {
		return nil, err
	}
	s := &Store{
		engine: engine, host: info, cfg: cfg.withDefaults(), stateFile: sf,
		shrinking: make(chan struct{}, 1), queueChanged: make(chan struct{}, 1),
		inUse: map[string]int{}, layers: map[string]bool{}, used: -1,
	}
	if cfg.PullsPerMinute > 0 {
		s.limiter = rate.NewLimiter(rate.Limit(cfg.PullsPerMinute/60), 1)
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

// Ensure pulls an image if the engine lacks it, and keeps it from being removed until
// release is called, which is safe to call more than once. It waits while the engine's
// disk has no space for another sandbox. The error is an *env.Error, or the cause of
// ctx.
func (s *Store) Ensure(ctx context.Context, req Request) (img Image, release func(), err error) {
	name, err := NormalizeName(req.Ref)
	if err != nil {
		return Image{}, nil, err
	}
	s.markInUse(name, req.Platform)
	releaseOnce := sync.OnceFunc(func() { s.release(context.WithoutCancel(ctx), name) })
	defer func() {
		if err != nil {
			err = s.wrapError(ctx, req, err)
			releaseOnce()
		}
	}()
	// Record the use before looking: another process may be about to remove the image.
	if err := s.recordUser(ctx, name, s.host.Owner); err != nil {
		return Image{}, nil, err
	}
	if err := s.waitForDisk(ctx, req, 0, false); err != nil {
		return Image{}, nil, err
	}
	for {
		img, present, err := s.find(ctx, name, req.Platform)
		if err != nil || present {
			return img, releaseOnce, err
		}
		err = s.pulls.Do(ctx, pullKey(name, req.Platform), func(ctx context.Context) error {
			if _, present, err := s.find(ctx, name, req.Platform); err != nil || present {
				return err // another caller has pulled it since
			}
			return s.pullWithRetry(ctx, req, name, false)
		})
		if err != nil && !errors.Is(err, errPrefetchSkipped) { // after a skipped prefetch, pull again
			return Image{}, nil, err
		}
	}
}

// wrapError returns an *env.Error with a hint for an error of the state file: a
// problem of this machine, not of the attempt.
func (s *Store) wrapError(ctx context.Context, req Request, err error) error {
	if _, named := errors.AsType[*env.Error](err); named || ctx.Err() != nil {
		return err
	}
	e := &env.Error{
		Status: env.StartFailed, Op: "prepare image " + req.Ref, Err: err,
		Hint: "check that mini can read, write and lock " + s.stateFile.path + ", the list of images that it pulled",
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		e.Status, e.Hint = env.HostDiskFull, "free space on the disk of "+s.stateFile.path
	}
	return e
}

// find looks up an image in the engine and records its layers.
func (s *Store) find(ctx context.Context, name, platform string) (Image, bool, error) {
	img, present, err := s.engine.Find(ctx, name, platform)
	if present {
		s.mu.Lock()
		for _, diffID := range img.Layers {
			s.layers[diffID] = true
		}
		s.mu.Unlock()
	}
	return img, present, err
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

// release records that a sandbox ended, and enforces the budget if that failed before.
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
	return s.stateFile.update(ctx, func(st *state) (bool, error) {
		p, ok := st.Pulled[name]
		if ok {
			p.Used = time.Now()
			if user != "" || p.User == s.host.Owner { // else another process uses it
				p.User = user
			}
			st.Pulled[name] = p
		}
		return ok, nil
	})
}

// Lookup returns an image if the engine has it. It does not pull.
func (s *Store) Lookup(ctx context.Context, req Request) (Image, bool, error) {
	name, err := NormalizeName(req.Ref)
	if err != nil {
		return Image{}, false, err
	}
	return s.find(ctx, name, req.Platform)
}

// Lease keeps an image from being removed until release is called, which is safe to
// call more than once. It pulls nothing and waits only for the file lock.
func (s *Store) Lease(ctx context.Context, req Request) (release func(), err error) {
	name, err := NormalizeName(req.Ref)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.inUse[name]++
	s.mu.Unlock()
	releaseOnce := sync.OnceFunc(func() { s.release(context.WithoutCancel(ctx), name) })
	if err := s.recordUser(ctx, name, s.host.Owner); err != nil {
		releaseOnce()
		return nil, err
	}
	return releaseOnce, nil
}

// AddBuilt records that mini built an image from another one. Such images count
// towards the budget and are removed before pulled ones. If the image alone exceeds the
// budget, AddBuilt removes it and returns an error.
func (s *Store) AddBuilt(ctx context.Context, name, base string) error {
	name, err := NormalizeName(name)
	if err != nil {
		return err
	}
	if base, err = NormalizeName(base); err != nil {
		return err
	}
	return s.recordImage(ctx, Request{Ref: name}, name, base)
}

// AddFound is AddBuilt for an image that exists, unless it is recorded: the process that
// built it was killed, or had another state file. It applies no budget.
func (s *Store) AddFound(ctx context.Context, name, id, base string) error {
	base, err := NormalizeName(base)
	if err != nil {
		return err
	}
	return s.stateFile.update(ctx, func(st *state) (bool, error) {
		_, recorded := st.Pulled[name]
		if !recorded {
			st.add(name, Image{ID: id}, s.host.Owner, base)
		}
		return !recorded, nil
	})
}

// Prefetch sets the images needed later, in order, and pulls the first few in advance.
// It pulls one at a time, and only if no image of the list has to be removed for it. Pulled
// images of the list are removed last. stop ends the prefetch and clears the list.
func (s *Store) Prefetch(ctx context.Context, needs []Request) (stop func()) {
	queue := make([]queuedImage, 0, len(needs))
	for _, req := range needs {
		if name, err := NormalizeName(req.Ref); err == nil { // Ensure reports invalid names
			queue = append(queue, queuedImage{name: name, platform: req.Platform})
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
	finished := map[string]bool{} // present, pulled or failed
	for ctx.Err() == nil {
		req, found := s.nextPrefetch(finished)
		if !found {
			select {
			case <-ctx.Done():
			case <-s.queueChanged:
			}
			continue
		}
		_, present, err := s.find(ctx, req.Ref, req.Platform)
		if !present && err == nil {
			err = s.pulls.Do(ctx, pullKey(req.Ref, req.Platform), func(ctx context.Context) error { return s.pullWithRetry(ctx, req, req.Ref, true) })
		}
		if errors.Is(err, errPrefetchSkipped) {
			_ = sleep(ctx, 5*s.cfg.PollInterval) // the loop sees the end of ctx
		} else {
			finished[pullKey(req.Ref, req.Platform)] = true
		}
	}
}

// nextPrefetch returns the first of the next Config.Prefetch images that is not in
// finished.
func (s *Store) nextPrefetch(finished map[string]bool) (req Request, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	window := map[string]bool{}
	for _, q := range s.queue {
		key := pullKey(q.name, q.platform)
		if q.started || window[key] {
			continue
		}
		if window[key] = true; len(window) > s.cfg.Prefetch {
			break
		}
		if !finished[key] {
			return Request{Ref: q.name, Platform: q.platform}, true
		}
	}
	return req, false
}

// Status is the space that a store has and uses, in bytes.
type Status struct {
	Free      int64 // free on the engine's disk
	FreeKnown bool  // Free is valid
	// Budget is the limit for the images that mini pulled; 0 means no limit. Used is
	// the size of these images as last measured; -1 if never measured.
	Budget, Used int64
}

// Status returns the current free space of the disk, and the size of the images as last
// measured. It sends no request to the engine.
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
