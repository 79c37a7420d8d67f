package docker_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// registry is a small image registry that has one image, "mini-test-pulled".
type registry struct {
	*httptest.Server
	manifests atomic.Int32 // how often its manifest was asked for
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	tarred := tarball(t, fmt.Sprintf("made-%d", time.Now().UnixNano())) // an image of its own each time
	var layer bytes.Buffer
	z := gzip.NewWriter(&layer)
	if _, err := z.Write(tarred); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	config := fmt.Appendf(nil, `{"architecture":%q,"os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":[%q]}}`, runtime.GOARCH, digest(tarred))
	const v2 = "application/vnd.docker.distribution.manifest.v2+json"
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,
		"config":{"mediaType":"application/vnd.docker.container.image.v1+json","size":%d,"digest":%q},
		"layers":[{"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","size":%d,"digest":%q}]}`,
		v2, len(config), digest(config), layer.Len(), digest(layer.Bytes()))

	r := &registry{}
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/{$}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v2/mini-test-pulled/manifests/{ref}", func(w http.ResponseWriter, _ *http.Request) {
		r.manifests.Add(1)
		w.Header().Set("Content-Type", v2)
		w.Header().Set("Docker-Content-Digest", digest(manifest))
		_, _ = w.Write(manifest) // the engine may hang up
	})
	mux.HandleFunc("/v2/mini-test-pulled/blobs/{digest}", func(w http.ResponseWriter, q *http.Request) {
		for _, b := range [][]byte{config, layer.Bytes()} {
			if q.PathValue("digest") == digest(b) {
				_, _ = w.Write(b) // the engine may hang up
			}
		}
	})
	mux.HandleFunc("/v2/mini-test-broken/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusBadGateway)
	})
	over := make(chan struct{}) // an engine goes on with a pull that its client gave up
	mux.HandleFunc("/v2/mini-test-slow/", func(http.ResponseWriter, *http.Request) { <-over })
	mux.HandleFunc("/v2/mini-test-limited/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}`))
	})
	mux.HandleFunc("/v2/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`))
	})
	r.Server = httptest.NewServer(mux) // engines trust registries on the loopback without TLS
	t.Cleanup(func() {
		close(over)
		r.Close()
	})
	return r
}

func (r *registry) ref(name string) string {
	return strings.TrimPrefix(r.URL, "http://") + "/" + name + ":latest"
}

func TestMissingImageIsPulledOnce(t *testing.T) {
	r := newRegistry(t)
	var mu sync.Mutex
	var last docker.PullProgress
	finished := 0
	e := dockertest.EngineWith(t, docker.EngineConfig{PullProgress: func(p docker.PullProgress) {
		mu.Lock()
		defer mu.Unlock()
		last = p
		if p.Done {
			finished++
		}
	}})
	ref := r.ref("mini-test-pulled")
	dropImage(t, ref)
	var g errgroup.Group
	for range 6 {
		g.Go(func() error {
			box, err := e.Start(t.Context(), docker.Config{Image: ref})
			if err != nil {
				return err
			}
			if i := box.Info(); !strings.Contains(i.ImageDigest, "mini-test-pulled@sha256:") {
				return fmt.Errorf("digest is %q", i.ImageDigest)
			}
			return box.Close(t.Context())
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if finished != 1 || last.Image != ref || last.Failed || last.Layers != 1 || last.LayersDone != 1 || last.Bytes != last.Total {
		t.Errorf("%d pulls, at the end %+v; want one, complete", finished, last)
	}
}

func TestImageThatCannotBePulled(t *testing.T) {
	r := newRegistry(t)
	for name, want := range map[string]env.Status{
		r.ref("mini-test-missing"): env.ImageNotFound,
		r.ref("mini-test-broken"):  env.PullFailed,
		r.ref("mini-test-limited"): env.PullFailed,
		r.ref("mini-test-slow"):    env.PullFailed,
		"Not An Image":             env.ImageNotFound,
		"127.0.0.1:1/nobody/there": env.PullFailed,
	} {
		t.Run(name, func(t *testing.T) {
			var last docker.PullProgress
			e := dockertest.EngineWith(t, docker.EngineConfig{
				PullTimeout: 3 * time.Second, PullProgress: func(p docker.PullProgress) { last = p },
			})
			_, err := e.Start(t.Context(), docker.Config{Image: name})
			if last.Done && !last.Failed {
				t.Errorf("the pull is told to have ended well: %+v", last)
			}
			if status(err) != want {
				t.Errorf("err = %v, want %s", err, want)
			}
			t.Log(err)
		})
	}
}
