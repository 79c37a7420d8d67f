package imagestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/env/docker/registrytest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

const mb = 1 << 20

func TestConcurrentPulls(t *testing.T) {
	r := registrytest.Start(t)
	refs := pushImages(t, r, 12, 64<<10)
	s, _ := open(t, imagestore.Config{Prefetch: 3})
	defer s.Prefetch(t.Context(), requests(refs))()
	var workers errgroup.Group
	workers.SetLimit(6)
	for i := range 36 { // three instances for each image
		workers.Go(func() error {
			img, release, err := s.Ensure(t.Context(), imagestore.Request{Ref: refs[i/3]})
			if err != nil {
				return err
			}
			defer release()
			if !strings.Contains(img.Digest, "@sha256:") || len(img.Layers) != 2 {
				return fmt.Errorf("%s came as %+v", refs[i/3], img)
			}
			return nil
		})
	}
	require.NoError(t, workers.Wait())
	// The engine fetches a layer once for each pull that needs it.
	counts := map[string]int{}
	for _, request := range r.Requests() {
		if strings.HasPrefix(request, "GET ") && strings.Contains(request, "/manifests/sha256:") || strings.HasPrefix(request, "HEAD ") && strings.HasSuffix(request, "/manifests/latest") {
			counts[request]++
		}
	}
	for _, ref := range refs {
		name := strings.TrimSuffix(strings.TrimPrefix(ref, r.Host+"/"), ":latest")
		if n := counts["HEAD /v2/"+name+"/manifests/latest"]; n < 1 || n > 2 { // one request of mini and one of the engine
			t.Errorf("%d HEAD requests for %s", n, name)
		}
	}
}

func TestPrefetchWindow(t *testing.T) {
	r := registrytest.Start(t)
	refs := pushImages(t, r, 12, 16<<10)
	c := dockertest.Client(t)
	s, _ := open(t, imagestore.Config{Prefetch: 3})
	stop := s.Prefetch(t.Context(), requests(refs))
	defer stop()
	eventually(t, "the first three are present", func() bool { return isPresent(t, c, refs[0]) && isPresent(t, c, refs[1]) && isPresent(t, c, refs[2]) })
	_, release := ensure(t, s, refs[0])
	defer release()
	eventually(t, "the fourth is present", func() bool { return isPresent(t, c, refs[3]) })
	stop()
	for _, ref := range refs[4:] {
		if isPresent(t, c, ref) {
			t.Errorf("%s was pulled too early", ref)
		}
	}
}

// TestBudgetRemovesLeastNeeded: the budget is enough for three images and their shared
// layer. The store first removes images that this run does not need again, then those
// that it needs last. It never removes images that are in use, that mini did not pull,
// or that have another name.
func TestBudgetRemovesLeastNeeded(t *testing.T) {
	r := registrytest.Start(t)
	refs := pushImages(t, r, 7, mb)
	c := dockertest.Client(t)
	pullByHand(t, refs[6])
	s, events := open(t, imagestore.Config{Budget: 4*mb + mb/2})
	_, keep := ensure(t, s, refs[0]) // in use all along
	defer keep()
	for _, ref := range refs[1:3] {
		_, release := ensure(t, s, ref)
		release()
	}
	stop := s.Prefetch(t.Context(), requests([]string{refs[3], refs[1], refs[4]}))
	_, release := ensure(t, s, refs[3])
	release()
	if !isPresent(t, c, refs[0]) || !isPresent(t, c, refs[1]) || isPresent(t, c, refs[2]) {
		t.Errorf("used: %t, needed: %t, done: %t; want the last to be gone only", isPresent(t, c, refs[0]), isPresent(t, c, refs[1]), isPresent(t, c, refs[2]))
	}
	stop()
	other := strings.TrimSuffix(refs[1], ":latest") + ":mine"
	registrytest.RemoveOnCleanup(t, c, other)
	require.NoError(t, c.ImageTag(t.Context(), refs[1], other))
	for _, ref := range refs[4:6] {
		_, release := ensure(t, s, ref)
		release()
	}
	for _, ref := range []string{refs[0], refs[1], other, refs[6]} {
		if !isPresent(t, c, ref) {
			t.Errorf("%s was removed although it was in use, had another name or was not pulled by mini", ref)
		}
	}
	if len(events.ofKind(imagestore.Removed)) == 0 {
		t.Error("no event reports a removal")
	}
	for _, n := range events.all {
		t.Logf("%s %s: %s", n.Kind, n.Image, n.Text)
	}
}

func pullByHand(t *testing.T, ref string) {
	t.Helper()
	e := dockertest.EngineWith(t, docker.EngineConfig{})
	sandbox, err := e.Start(t.Context(), docker.Config{Image: ref, Instance: t.Name()})
	if sandbox != nil {
		defer sandbox.Close(t.Context())
	}
	if !isPresent(t, dockertest.Client(t), ref) {
		t.Fatal(err)
	}
}

func TestBudgetBelowOneImage(t *testing.T) {
	r := registrytest.Start(t)
	refs := pushImages(t, r, 1, mb)
	s, _ := open(t, imagestore.Config{Budget: mb})
	err := s.CheckBudget(t.Context(), requests(refs))
	if status(err) != env.PullFailed || !strings.Contains(err.Error(), "more than the budget of 1.05 MB") {
		t.Errorf("err = %v", err)
	}
	if _, _, err := s.Ensure(t.Context(), requests(refs)[0]); status(err) != env.PullFailed {
		t.Errorf("err = %v", err)
	}
	// The uncompressed size is known only after the pull.
	zeros := r.Push(t, "mini-test/zeros", registrytest.Image(t, "", registrytest.Files(t, map[string][]byte{"zeros": make([]byte, 3*mb)})))
	registrytest.RemoveOnCleanup(t, dockertest.Client(t), zeros)
	_, _, err = s.Ensure(t.Context(), imagestore.Request{Ref: zeros})
	if status(err) != env.PullFailed || !strings.Contains(err.Error(), "3.15 MB, more than the budget") {
		t.Errorf("err = %v", err)
	}
	if isPresent(t, dockertest.Client(t), zeros) {
		t.Error("the image is still in the engine")
	}
}

// TestWaitForBudget: if all images are in use, Ensure waits until one is released.
func TestWaitForBudget(t *testing.T) {
	r := registrytest.Start(t)
	refs := pushImages(t, r, 2, mb)
	s, events := open(t, imagestore.Config{Budget: 2*mb + mb/2})
	_, release := ensure(t, s, refs[0])
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_, release, err := s.Ensure(t.Context(), imagestore.Request{Ref: refs[1], Requester: "second"})
		if err != nil {
			t.Error(err)
			return
		}
		release()
	})
	eventually(t, "the second Ensure waits", func() bool { return len(events.ofKind(imagestore.WaitingForSpace)) == 1 })
	release()
	waiting.Wait()
	if isPresent(t, dockertest.Client(t), refs[0]) {
		t.Error("the first image was not removed")
	}
	if n := events.ofKind(imagestore.Resumed); len(n) != 1 || n[0].Requester != "second" {
		t.Errorf("the events about the end of the wait are %+v", n)
	}
}

// stateText returns the content of the state file in dir; "" if there is none.
func stateText(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(files) != 1 {
		return ""
	}
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	return string(text)
}

// TestTwoProcesses: two processes share a state file, and neither removes an image that
// the other uses.
func TestTwoProcesses(t *testing.T) {
	r := registrytest.Start(t)
	refs := pushImages(t, r, 3, mb)
	c := dockertest.Client(t)
	dir := t.TempDir()
	first, _ := open(t, imagestore.Config{Dir: dir})
	_, release := ensure(t, first, refs[0])
	// Both stores are in this process, so otherProcess sets another owner.
	other := otherProcess(t, dir, imagestore.Config{Budget: 2*mb + mb/2, NoWait: true})
	if _, _, err := other.Ensure(t.Context(), imagestore.Request{Ref: refs[1]}); status(err) != env.PullFailed || !isPresent(t, c, refs[0]) {
		t.Errorf("err = %v, and the image that is in use is here: %t", err, isPresent(t, c, refs[0]))
	}
	pruned, err := other.Prune(t.Context(), nil, false)
	if err != nil || len(pruned.Images) != 1 || pruned.Images[0].Removed || pruned.Images[0].KeptReason == "" {
		t.Errorf("pruned = %+v, %v", pruned, err)
	}
	release()
	_, release, err = other.Ensure(t.Context(), imagestore.Request{Ref: refs[1]})
	require.NoError(t, err)
	release()
	if isPresent(t, c, refs[0]) {
		t.Error("the released image was not removed")
	}
}

func TestPruneOnlyPulledImages(t *testing.T) {
	r := registrytest.Start(t)
	refs := pushImages(t, r, 4, 64<<10)
	c := dockertest.Client(t)
	pullByHand(t, refs[0])
	s, _ := open(t, imagestore.Config{})
	for _, ref := range refs {
		_, release := ensure(t, s, ref)
		release()
	}
	keep := requests(refs[1:2])
	dry, err := s.Prune(t.Context(), keep, true)
	if err != nil || len(dry.Images) != 3 || !isPresent(t, c, refs[3]) {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	done, err := s.Prune(t.Context(), keep, false)
	if err != nil || len(done.Images) != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	for i, want := range []bool{true, true, false, false} {
		if isPresent(t, c, refs[i]) != want {
			t.Errorf("%s is here: %t, want %t", refs[i], !want, want)
		}
	}
}

// TestMinFree: while the disk has less than MinFree, Ensure waits and does not fail.
func TestMinFree(t *testing.T) {
	r := registrytest.Start(t)
	refs := pushImages(t, r, 1, 16<<10)
	s, events := open(t, imagestore.Config{MinFree: 1 << 60})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("over")
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_, _, err := s.Ensure(ctx, imagestore.Request{Ref: refs[0], Requester: "one"})
		assert.ErrorIs(t, err, cause)
	})
	eventually(t, "Ensure waits", func() bool { return len(events.ofKind(imagestore.WaitingForSpace)) == 1 })
	cancel(cause)
	waiting.Wait()
	if text := events.ofKind(imagestore.WaitingForSpace)[0].Text; !strings.Contains(text, "free on the engine's disk") || !strings.Contains(text, "Ctrl-C") {
		t.Errorf("the event's text is %q", text)
	}
	noWait, _ := open(t, imagestore.Config{MinFree: 1 << 60, NoWait: true})
	if _, _, err := noWait.Ensure(t.Context(), imagestore.Request{Ref: refs[0]}); status(err) != env.HostDiskFull {
		t.Errorf("err = %v", err)
	}
}

func TestPlan(t *testing.T) {
	r := registrytest.Start(t)
	refs := pushImages(t, r, 3, 100<<10)
	foreign := r.Push(t, "mini-test/foreign", registrytest.Image(t, "s390x", registrytest.Layer(t, 1<<10)))
	s, _ := open(t, imagestore.Config{})
	_, release := ensure(t, s, refs[0])
	defer release()
	p, err := s.Plan(t.Context(), requests([]string{refs[0], refs[1], refs[1], refs[2], foreign, r.Host + "/mini-test/none", "127.0.0.1:1/x"}))
	require.NoError(t, err)
	if p.PresentCount != 1 || p.Pull != 5 || p.Unknown != 2 || p.Images[1].Instances != 2 {
		t.Errorf("%+v", p)
	}
	// The shared layer is present: only the images' own layers have to be pulled.
	if n := p.PullBytes; n < 200<<10 || n > 230<<10 {
		t.Errorf("%d bytes are to be pulled, want two layers of 100 KiB", n)
	}
	for i, want := range []string{"", "", "", "linux/s390x", "no such image", "not checked"} {
		if got := p.Images[i].Problem; (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: problem %q, want %q", p.Images[i].Image, got, want)
		}
	}
	if p.FreeBytes == nil {
		t.Log("the free space of this engine's disk is unknown")
	}
}

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
	require.NoError(t, err)
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
		assert.Equal(t, []string{"new:1"}, e.images, "the engine")
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
		require.NoError(t, err)
		require.NoError(t, s.AddBuilt(t.Context(), "mini-prepared:1", "base:1"))
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
