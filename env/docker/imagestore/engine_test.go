package imagestore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	if err != nil {
		t.Fatal(err)
	}
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
