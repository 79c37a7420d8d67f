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

// notes collects what a store tells.
type notes struct {
	mu  sync.Mutex
	all []imagestore.Event
}

func (n *notes) tell(note imagestore.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, note)
}

func (n *notes) of(kind imagestore.EventKind) (found []imagestore.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, note := range n.all {
		if note.Kind == kind {
			found = append(found, note)
		}
	}
	return found
}

// open is a store over the real engine, with a memory of its own.
func open(t *testing.T, cfg imagestore.Config) (*imagestore.Store, *notes) {
	t.Helper()
	said := &notes{}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	keys, err := registry.New("mini-test", cfg.Budget > 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	cfg.Registry, cfg.Notify = keys, said.tell
	if cfg.InitialBackoff == 0 {
		cfg.InitialBackoff = 20 * time.Millisecond
	}
	cfg.PollInterval = 50 * time.Millisecond
	e := dockertest.EngineWith(t, docker.EngineConfig{Images: &cfg, PullTimeout: time.Minute})
	return e.Images(), said
}

// ensure brings an image and fails the test when that fails.
func ensure(t *testing.T, s *imagestore.Store, ref string) (imagestore.Image, func()) {
	t.Helper()
	img, release, err := s.Ensure(t.Context(), imagestore.Request{Ref: ref})
	if err != nil {
		t.Fatalf("%s: %v", ref, err)
	}
	return img, release
}

// here says whether the engine has an image.
func here(t *testing.T, c *client.Client, ref string) bool {
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

// dozen pushes images that share a layer and have one of their own.
func dozen(t *testing.T, r *registrytest.Registry, n, bytes int) []string {
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

func needs(refs []string) (all []imagestore.Request) {
	for _, ref := range refs {
		all = append(all, imagestore.Request{Ref: ref})
	}
	return all
}

// blobs counts requests for layers and configurations.
func blobs(r *registrytest.Registry, method string) (n int) {
	for _, asked := range r.Requests() {
		if strings.HasPrefix(asked, method+" ") && strings.Contains(asked, "/blobs/") {
			n++
		}
	}
	return n
}

func isBlob(q *http.Request) bool { return strings.Contains(q.URL.Path, "/blobs/") }
func isManifest(q *http.Request) bool {
	return strings.Contains(q.URL.Path, "/manifests/")
}

// eventually polls until f holds.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if f() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not after half a minute: %s", what)
		}
	}
}

// otherProcess is a store with the memory of another, and another owner that
// lives.
func otherProcess(t *testing.T, dir string, cfg imagestore.Config) *imagestore.Store {
	t.Helper()
	cfg.Dir = dir
	s, _ := open(t, cfg)
	s.Rename("another")
	return s
}
