package imagestore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/unit"
)

// waitForDisk waits until the engine's disk has Config.MinFree plus the given bytes
// free. It first removes unused images that mini pulled. A prefetch neither removes
// images nor waits. If MinFree is 0 or the free space is unknown, waitForDisk does
// nothing.
func (s *Store) waitForDisk(ctx context.Context, req Request, bytes int64, prefetch bool) error {
	want := s.cfg.MinFree + bytes
	return s.waitUntil(ctx, req, prefetch, func() (ok, retryable bool, reason error) {
		if s.cfg.MinFree == 0 || s.host.FreeDisk == nil {
			return true, true, nil
		}
		free, known := s.host.FreeDisk()
		for known && free < want && !prefetch && s.freeSpace(ctx, want-free) {
			free, known = s.host.FreeDisk()
		}
		if !known || free >= want {
			return true, true, nil
		}
		return false, true, &env.Error{Status: env.HostDiskFull, Op: "make room for " + req.Ref, Err: fmt.Errorf(
			"%s are free on the engine's disk, and run.min_free_disk with this image needs %s; "+
				"free space there (docker system df shows what uses it), or stop mini with Ctrl-C", unit.Size(free), unit.Size(want))}
	})
}

// waitUntil calls check until check returns ok, and sends events about the wait. With
// Config.NoWait, or if retryable is false or reason is not an *env.Error, it returns
// reason instead of waiting. For a prefetch it returns errPrefetchSkipped instead of an
// *env.Error.
func (s *Store) waitUntil(
	ctx context.Context, r Request, prefetch bool, check func() (ok, retryable bool, reason error),
) error {
	for notified := false; ; notified = true {
		ok, retryable, reason := check()
		switch e, _ := errors.AsType[*env.Error](reason); {
		case ok && notified:
			s.cfg.Notify(Event{Kind: Resumed, Image: r.Ref, Requester: r.Requester, Text: "space is available again"})
			return nil
		case ok:
			return nil
		case e == nil:
			return reason
		case prefetch:
			return errPrefetchSkipped
		case s.cfg.NoWait, !retryable:
			return reason
		case !notified:
			s.cfg.Notify(Event{Kind: WaitingForSpace, Image: r.Ref, Requester: r.Requester, Text: "waiting: " + e.Err.Error()})
		}
		if err := sleep(ctx, s.cfg.PollInterval); err != nil {
			return err
		}
	}
}

// waitForBudget removes unused images and waits until another image fits the budget.
// total is the minimum size of the image in bytes, and missing the size of what the engine
// lacks of it. Concurrent pulls may exceed the budget together; recordImage applies the
// budget after each pull.
func (s *Store) waitForBudget(ctx context.Context, req Request, total, missing int64, prefetch bool) error {
	if s.cfg.Budget == 0 {
		return nil
	}
	if total > s.cfg.Budget {
		return s.tooLargeError(req.Ref, "at least "+unit.Size(total))
	}
	return s.waitUntil(ctx, req, prefetch, func() (ok, retryable bool, reason error) {
		inv, err := s.shrink(ctx, !prefetch, func(used int64) int64 { return used + missing - s.cfg.Budget })
		if err != nil || inv.excess <= 0 {
			return err == nil, false, err
		}
		return false, s.canShrink(inv), &env.Error{
			Status: env.PullFailed, Op: "pull image " + req.Ref, Hint: "increase --image-budget, or run mini images prune",
			Err: fmt.Errorf("the images that mini pulled use %s of the budget of %s, and the rest is in use", unit.Size(inv.used), unit.Size(s.cfg.Budget)),
		}
	})
}

// canShrink reports whether images in use may be released later.
func (s *Store) canShrink(inv inventory) bool {
	return slices.ContainsFunc(inv.list, func(o ownedImage) bool {
		now, _ := s.needed(o)
		return now || o.InUse || inv.state.isUsedByOthers(o, s.host)
	})
}

func (s *Store) tooLargeError(ref, imageSize string) error {
	return &env.Error{
		Status: env.PullFailed, Op: "pull image " + ref,
		Err:  fmt.Errorf("it takes %s, more than the budget of %s", imageSize, unit.Size(s.cfg.Budget)),
		Hint: "increase --image-budget (run.image_budget)",
	}
}

// enforceBudget removes images until the rest fits the budget. If images in use
// prevent that, release calls it again.
func (s *Store) enforceBudget(ctx context.Context) error {
	inv, err := s.shrink(ctx, true, func(used int64) int64 { return used - s.cfg.Budget })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overBudget = err != nil || inv.excess > 0
	return err
}

// freeSpace removes images until the removals have freed at least the given number of
// bytes, or no more may be removed. It reports whether the images that mini pulled use
// less than before.
func (s *Store) freeSpace(ctx context.Context, bytes int64) bool {
	before := int64(-1)
	inv, err := s.shrink(ctx, false, func(used int64) int64 {
		if before < 0 {
			before = used
		}
		return bytes - (before - used)
	})
	if err != nil && ctx.Err() == nil {
		s.cfg.Notify(Event{Kind: Warning, Text: err.Error()})
	}
	return err == nil && inv.used < before
}

// inventory lists the images that mini pulled and the engine has.
type inventory struct {
	diskUsage DiskUsage
	list      []ownedImage
	state     state
	used      int64 // bytes of the list
	excess    int64 // bytes to remove; 0 or less for none
}

// measure returns the inventory, without excess, and removes missing images from the
// state file. It does not hold the lock of the file while it queries the engine, which may
// take minutes.
func (s *Store) measure(ctx context.Context) (inv inventory, err error) {
	before, err := s.stateFile.load(ctx)
	if err != nil {
		return inv, err
	}
	if inv.diskUsage, err = s.engine.DiskUsage(ctx); err != nil {
		return inv, err
	}
	err = s.stateFile.update(ctx, func(st *state) (bool, error) {
		inv.state = *st
		return st.removeMissing(inv.diskUsage, before), nil
	})
	inv.list = before.ownedImages(inv.diskUsage)
	inv.used = totalSize(inv.list)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = inv.used
	return inv, err
}

// shrink removes images, in the order of nextToRemove, until excess returns 0 or less, or
// no more may be removed. With includeQueued it also removes images that this process
// needs later. Only one goroutine at a time shrinks. shrink returns the inventory of the
// remaining images.
func (s *Store) shrink(ctx context.Context, includeQueued bool, excess func(used int64) int64) (inventory, error) {
	select {
	case s.shrinking <- struct{}{}:
		defer func() { <-s.shrinking }()
	case <-ctx.Done():
		return inventory{}, context.Cause(ctx)
	}
	tried := map[string]bool{} // removed, or failed to be removed
	for {
		inv, err := s.measure(ctx)
		if err != nil {
			return inv, err
		}
		inv.excess = excess(inv.used)
		removed := false
		for over := inv.excess; over > 0; {
			o, found := s.nextToRemove(inv, includeQueued, tried)
			if !found {
				break
			}
			tried[o.ID] = true
			switch err := s.removeUnused(ctx, o, includeQueued); {
			case err == nil:
				removed = true
				over -= o.Size - o.Shared
				s.cfg.Notify(Event{Kind: Removed, Image: o.refs[0], Text: "removed to free space: " + unit.Size(o.Size-o.Shared)})
			case !errors.Is(err, ErrInUse):
				s.cfg.Notify(Event{Kind: Warning, Image: o.refs[0], Text: err.Error()})
			}
		}
		if removed {
			s.clearLayers()
			continue
		}
		return inv, nil
	}
}

// nextToRemove returns the image to remove next. Images that mini built come first, since
// mini can build them again; pulled images that this process needs later come last. Among
// equals, the least recently used comes first.
func (s *Store) nextToRemove(inv inventory, includeQueued bool, tried map[string]bool) (least ownedImage, found bool) {
	best := 0
	for _, o := range inv.list { // sorted by last use
		if tried[o.ID] || o.InUse || inv.state.isUsedByOthers(o, s.host) {
			continue
		}
		now, later := s.needed(o)
		if now || later && !includeQueued {
			continue
		}
		rank := 1
		if later {
			rank = 2
		}
		if o.base != "" {
			rank = 0
		}
		if !found || rank < best {
			least, best, found = o, rank, true
		}
	}
	return least, found
}

// needed reports whether this process uses an image now, or will need it later.
func (s *Store) needed(o ownedImage) (now, later bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = slices.ContainsFunc(o.refs, func(ref string) bool { return s.inUse[ref] > 0 })
	later = slices.ContainsFunc(s.queue, func(q queuedImage) bool { return !q.started && slices.Contains(o.refs, q.name) })
	return now, later
}

// removeUnused removes an image if it is unchanged and still not in use. Callers that
// start to use it wait for the lock.
func (s *Store) removeUnused(ctx context.Context, o ownedImage, includeQueued bool) error {
	return s.stateFile.update(ctx, func(st *state) (bool, error) {
		if now, later := s.needed(o); now || later && !includeQueued || st.isUsedByOthers(o, s.host) {
			return false, ErrInUse
		}
		return true, s.removeNames(ctx, st, o)
	})
}

// errRetagged means that a name refers to another image than before.
var errRetagged = fmt.Errorf("%w: its name refers to another image now", ErrInUse)

// removeNames removes all recorded names of an image. The caller holds the lock of
// the state file.
func (s *Store) removeNames(ctx context.Context, st *state, o ownedImage) error {
	for _, ref := range o.refs {
		img, present, err := s.engine.Find(ctx, ref, "")
		if err != nil {
			return err
		}
		if st.Pulled[ref].ID != o.ID || present && img.ID != o.ID {
			return errRetagged
		}
		if err := s.engine.Remove(ctx, ref); err != nil {
			return err
		}
		delete(st.Pulled, ref)
	}
	return nil
}

// clearLayers clears the set of present layers. It is called after a removal, which may
// have removed some of them.
func (s *Store) clearLayers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.layers)
}

// totalSize estimates the bytes that images use: the layers that only one image has,
// plus the shared layers, whose size is estimated as that of the image that shares
// most.
func totalSize(list []ownedImage) (bytes int64) {
	var shared int64
	for _, o := range list {
		bytes += o.Size - o.Shared
		shared = max(shared, o.Shared)
	}
	return bytes + shared
}
