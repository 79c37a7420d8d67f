package imagestore_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/imagestore"
)

// small is an engine whose disk has room for so many images of 100 bytes.
type small struct {
	mu   sync.Mutex
	room int
	here []string
}

func (e *small) Find(_ context.Context, ref, _ string) (imagestore.Image, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return imagestore.Image{ID: "id of " + ref, Size: 100}, slices.Contains(e.here, ref), nil
}

func (e *small) Pull(_ context.Context, ref, _, _ string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.here) >= e.room {
		return &env.Error{Status: env.HostDiskFull, Op: "pull image " + ref, Err: errors.New("no space left on device")}
	}
	e.here = append(e.here, ref)
	return nil
}

func (e *small) Remove(_ context.Context, ref string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.here = slices.DeleteFunc(e.here, func(r string) bool { return r == ref })
	return nil
}

func (e *small) DiskUsage(context.Context) (s imagestore.DiskUsage, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ref := range e.here {
		s.Images = append(s.Images, imagestore.ImageUsage{ID: "id of " + ref, Names: []string{ref}, Size: 100})
	}
	return s, nil
}

func (e *small) grow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room++
}

// newSmall is a store over one. dir is made outside of a bubble, to be removed
// there.
func newSmall(t *testing.T, dir string, room int, tell func(imagestore.Event)) (*small, *imagestore.Store) {
	t.Helper()
	e := &small{room: room}
	s, err := imagestore.New(e, imagestore.EngineInfo{ID: "small", Owner: "me"}, imagestore.Config{Dir: dir, Notify: tell})
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

// A disk that is full in mid-pull, of which nothing can be measured from here:
// what mini pulled and nobody uses goes, then it is waited.
func TestFullDiskIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		said := &notes{}
		e, s := newSmall(t, dir, 1, said.tell)
		_, release := ensure(t, s, "old:1")
		release()
		_, keep := ensure(t, s, "new:1") // in the place of the old one
		defer keep()
		if !slices.Equal(e.here, []string{"new:1"}) {
			t.Errorf("the engine has %q", e.here)
		}
		time.AfterFunc(10*time.Minute, e.grow)
		start := time.Now()
		_, release = ensure(t, s, "more:1") // while the new one is in use
		release()
		if took := time.Since(start); took < 10*time.Minute || took > 15*time.Minute {
			t.Errorf("it took %s until there was room after ten minutes", took)
		}
		if len(said.of(imagestore.WaitingForSpace)) == 0 {
			t.Error("nobody was told")
		}
	})
}

func TestFullDiskIsNotWaitedForForEver(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		_, s := newSmall(t, dir, 0, nil)
		start := time.Now()
		if _, _, err := s.Ensure(t.Context(), imagestore.Request{Ref: "any:1"}); status(err) != env.HostDiskFull || time.Since(start) > time.Hour {
			t.Errorf("err = %v after %s", err, time.Since(start))
		}
	})
}

// What mini made of another image goes first, for it can be made again.
func TestPreparedImagesGoFirst(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e, s := newSmall(t, dir, 3, nil)
		_, release := ensure(t, s, "old:1")
		release()
		_, release = ensure(t, s, "base:1")
		e.here = append(e.here, "mini-prepared:1") // as a commit does
		hold, err := s.Lease(t.Context(), imagestore.Request{Ref: "mini-prepared:1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.AddBuilt(t.Context(), "mini-prepared:1", "base:1"); err != nil {
			t.Fatal(err)
		}
		_, more := ensure(t, s, "more:1") // it is in use, and the old one is not
		more()
		if want := []string{"base:1", "mini-prepared:1", "more:1"}; !slices.Equal(e.here, want) {
			t.Errorf("the engine has %q", e.here)
		}
		hold()
		release()
		_, more = ensure(t, s, "yet:1")
		defer more()
		if want := []string{"base:1", "more:1", "yet:1"}; !slices.Equal(e.here, want) {
			t.Errorf("the engine has %q", e.here)
		}
	})
}
