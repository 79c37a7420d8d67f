package imagestore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/env/docker/imagestore/registry"
	"github.com/minibench/mini/env/docker/registrytest"
	"github.com/minibench/mini/internal/require"
)

// eventRecorder records the events of a store.
type eventRecorder struct {
	mu  sync.Mutex
	all []imagestore.Event
}

func (n *eventRecorder) record(e imagestore.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, e)
}

func (n *eventRecorder) ofKind(kind imagestore.EventKind) (found []imagestore.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.all {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// open returns a store for the real engine, with its own state file unless cfg.Dir is
// set, and a recorder of its events.
func open(t *testing.T, cfg imagestore.Config) (*imagestore.Store, *eventRecorder) {
	t.Helper()
	events := &eventRecorder{}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	client, err := registry.New("mini-test", cfg.Budget > 0)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	cfg.Registry, cfg.Notify = client, events.record
	if cfg.InitialBackoff == 0 {
		cfg.InitialBackoff = 20 * time.Millisecond
	}
	cfg.PollInterval = 50 * time.Millisecond
	e := dockertest.EngineWith(t, docker.EngineConfig{Images: &cfg, PullTimeout: time.Minute})
	return e.Images(), events
}

// ensure calls Ensure and fails the test if that returns an error.
func ensure(t *testing.T, s *imagestore.Store, ref string) (imagestore.Image, func()) {
	t.Helper()
	img, release, err := s.Ensure(t.Context(), imagestore.Request{Ref: ref})
	if err != nil {
		t.Fatalf("%s: %v", ref, err)
	}
	return img, release
}

// isPresent reports whether the engine has an image.
func isPresent(t *testing.T, c *client.Client, ref string) bool {
	t.Helper()
	_, err := c.ImageInspect(context.WithoutCancel(t.Context()), ref)
	return err == nil
}

func status(err error) env.Status {
	if e, ok := errors.AsType[*env.Error](err); ok {
		return e.Status
	}
	return ""
}

// pushImages pushes n images that share a layer and have one of their own, and returns
// their names.
func pushImages(t *testing.T, r *registrytest.Registry, n, bytes int) []string {
	t.Helper()
	shared := registrytest.Layer(t, bytes)
	var refs []string
	for i := range n {
		img := registrytest.Image(t, "", shared, registrytest.Layer(t, bytes))
		refs = append(refs, r.Push(t, fmt.Sprintf("mini-test/row-%02d", i), img))
	}
	registrytest.RemoveOnCleanup(t, dockertest.Client(t), refs...)
	return refs
}

func requests(refs []string) (all []imagestore.Request) {
	for _, ref := range refs {
		all = append(all, imagestore.Request{Ref: ref})
	}
	return all
}

// countBlobRequests counts the requests for layers and configurations.
func countBlobRequests(r *registrytest.Registry, method string) (n int) {
	for _, request := range r.Requests() {
		if strings.HasPrefix(request, method+" ") && strings.Contains(request, "/blobs/") {
			n++
		}
	}
	return n
}

func isBlob(q *http.Request) bool { return strings.Contains(q.URL.Path, "/blobs/") }
func isManifest(q *http.Request) bool {
	return strings.Contains(q.URL.Path, "/manifests/")
}

// eventually polls until f returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if f() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("timeout while waiting until %s", what)
		}
	}
}

// otherProcess returns a store that shares a state file with others but has another
// owner, as in another running process.
func otherProcess(t *testing.T, dir string, cfg imagestore.Config) *imagestore.Store {
	t.Helper()
	cfg.Dir = dir
	s, _ := open(t, cfg)
	s.SetOwner("another")
	return s
}

// storeIn returns a store for an engine, with its state file in dir.
func storeIn(t *testing.T, e imagestore.Engine, dir string, cfg imagestore.Config) *imagestore.Store {
	t.Helper()
	cfg.Dir = dir
	s, err := imagestore.New(e, imagestore.EngineInfo{
		ID: "small", Owner: "me", OwnerAlive: func(string) (alive, known bool) { return true, true },
	}, cfg)
	require.NoError(t, err)
	return s
}

// createStateFile creates the state file of a store in dir and returns its path.
func createStateFile(t *testing.T, dir string) string {
	t.Helper()
	_, release := ensure(t, storeIn(t, &smallEngine{maxImages: 1}, dir, imagestore.Config{}), "first:1")
	release()
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(files) != 1 {
		t.Fatalf("files = %q, %v", files, err)
	}
	return files[0]
}

// TestStateFileErrors: an unusable state file is an *env.Error with a hint, so that the
// attempt may be retried.
func TestStateFileErrors(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"cannot be read":   func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) },
		"cannot be locked": func(f string) error { return errors.Join(os.Remove(f+".lock"), os.Mkdir(f+".lock", 0o700)) },
		"damaged":          func(f string) error { return os.WriteFile(f, []byte(`{"format":"mini-ima`), 0o600) },
		"another version":  func(f string) error { return os.WriteFile(f, []byte(`{"format":"mini-images-2"}`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := createStateFile(t, dir)
			require.NoError(t, damage(file))
			_, _, err := storeIn(t, &smallEngine{maxImages: 1}, dir, imagestore.Config{}).Ensure(t.Context(), imagestore.Request{Ref: "a:1"})
			e, ok := errors.AsType[*env.Error](err)
			if !ok || e.Status != env.StartFailed || !strings.Contains(e.Hint, file) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// hookedEngine is a smallEngine that calls a function during the next DiskUsage.
type hookedEngine struct {
	*smallEngine
	onDiskUsage func()
}

func (e *hookedEngine) DiskUsage(ctx context.Context) (imagestore.DiskUsage, error) {
	if f := e.onDiskUsage; f != nil {
		e.onDiskUsage = nil
		f()
	}
	return e.smallEngine.DiskUsage(ctx)
}

// TestMeasureWithoutLock: while an engine measures its images, which may take minutes,
// other processes can pull images. Those images are neither removed nor deleted from
// the state file.
func TestMeasureWithoutLock(t *testing.T) {
	for name, measure := range map[string]func(ctx context.Context, s *imagestore.Store) error{
		"prune": func(ctx context.Context, s *imagestore.Store) error { _, err := s.Prune(ctx, nil, false); return err },
		"room": func(ctx context.Context, s *imagestore.Store) error {
			_, release, err := s.Ensure(ctx, imagestore.Request{Ref: "big:1"})
			if err == nil {
				release()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			shared := &smallEngine{maxImages: 9}
			e := &hookedEngine{smallEngine: shared}
			s := storeIn(t, e, dir, imagestore.Config{Budget: 150})
			_, release := ensure(t, s, "old:1")
			release()
			other := storeIn(t, shared, dir, imagestore.Config{})
			other.SetOwner("another")
			e.onDiskUsage = func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				for _, ref := range []string{"old:1", "new:1"} {
					if _, _, err := other.Ensure(ctx, imagestore.Request{Ref: ref}); err != nil { // without releasing it
						t.Errorf("%s: %v", ref, err)
					}
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_ = measure(ctx, s) // it may fail, because the other store uses all images
			for _, ref := range []string{"old:1", "new:1"} {
				if _, ok, _ := shared.Find(t.Context(), ref, ""); !ok || !strings.Contains(stateText(t, dir), `"`+ref+`": {`) {
					t.Errorf("%s is present: %t, state: %s", ref, ok, stateText(t, dir))
				}
			}
		})
	}
}
