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

// smallEngine is a fake engine whose disk holds a limited number of images of 100
// bytes.
type smallEngine struct {
	mu        sync.Mutex
	maxImages int
	images    []string
}

func (e *smallEngine) Find(_ context.Context, ref, _ string) (imagestore.Image, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return imagestore.Image{ID: "id of " + ref, Size: 100}, slices.Contains(e.images, ref), nil
}

func (e *smallEngine) Pull(_ context.Context, ref, _, _ string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.images) >= e.maxImages {
		return &env.Error{Status: env.HostDiskFull, Op: "pull image " + ref, Err: errors.New("no space left on device")}
	}
	e.images = append(e.images, ref)
	return nil
}

func (e *smallEngine) Remove(_ context.Context, ref string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.images = slices.DeleteFunc(e.images, func(r string) bool { return r == ref })
	return nil
}

func (e *smallEngine) DiskUsage(context.Context) (s imagestore.DiskUsage, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ref := range e.images {
		s.Images = append(s.Images, imagestore.ImageUsage{ID: "id of " + ref, Names: []string{ref}, Size: 100})
	}
	return s, nil
}

func (e *smallEngine) grow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.maxImages++
}

// newSmallStore returns a store with a smallEngine. dir must be created outside the
// synctest bubble, because its cleanup runs there.
func newSmallStore(
	t *testing.T, dir string, maxImages int, record func(imagestore.Event),
) (*smallEngine, *imagestore.Store) {
	t.Helper()
	e := &smallEngine{maxImages: maxImages}
	info := imagestore.EngineInfo{ID: "small", Owner: "me"}
	s, err := imagestore.New(e, info, imagestore.Config{Dir: dir, Notify: record})
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

// TestWaitForFullDisk: if the disk is full during a pull and its free space is unknown,
// the store removes unused images that mini pulled, and then waits.
func TestWaitForFullDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		events := &eventRecorder{}
		e, s := newSmallStore(t, dir, 1, events.record)
		_, release := ensure(t, s, "old:1")
		release()
		_, keep := ensure(t, s, "new:1") // replaces the old one
		defer keep()
		if !slices.Equal(e.images, []string{"new:1"}) {
			t.Errorf("the engine has %q", e.images)
		}
		time.AfterFunc(10*time.Minute, e.grow)
		start := time.Now()
		_, release = ensure(t, s, "more:1") // while the new one is in use
		release()
		if took := time.Since(start); took < 10*time.Minute || took > 15*time.Minute {
			t.Errorf("Ensure took %s, and space was available after ten minutes", took)
		}
		if len(events.ofKind(imagestore.WaitingForSpace)) == 0 {
			t.Error("no event reports the wait")
		}
	})
}

func TestFullDiskTimeout(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		_, s := newSmallStore(t, dir, 0, nil)
		start := time.Now()
		if _, _, err := s.Ensure(t.Context(), imagestore.Request{Ref: "any:1"}); status(err) != env.HostDiskFull || time.Since(start) > time.Hour {
			t.Errorf("err = %v after %s", err, time.Since(start))
		}
	})
}

// TestBuiltImagesRemovedFirst: images that mini built are removed before pulled ones,
// because mini can build them again.
func TestBuiltImagesRemovedFirst(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e, s := newSmallStore(t, dir, 3, nil)
		_, release := ensure(t, s, "old:1")
		release()
		_, release = ensure(t, s, "base:1")
		e.images = append(e.images, "mini-prepared:1") // as a commit does
		releaseBuilt, err := s.Lease(t.Context(), imagestore.Request{Ref: "mini-prepared:1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.AddBuilt(t.Context(), "mini-prepared:1", "base:1"); err != nil {
			t.Fatal(err)
		}
		_, more := ensure(t, s, "more:1") // the built image is in use, and the old one is not
		more()
		if want := []string{"base:1", "mini-prepared:1", "more:1"}; !slices.Equal(e.images, want) {
			t.Errorf("the engine has %q", e.images)
		}
		releaseBuilt()
		release()
		_, more = ensure(t, s, "yet:1")
		defer more()
		if want := []string{"base:1", "more:1", "yet:1"}; !slices.Equal(e.images, want) {
			t.Errorf("the engine has %q", e.images)
		}
	})
}
