package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

const (
	config = `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}`
	media  = "application/vnd.docker.distribution.manifest.v2+json"
)

// serve starts a registry with one image, whose configuration has size bytes. before
// may answer a request and then returns true. gets counts the GET requests for
// manifests, sent the bytes sent of the configuration.
func serve(t *testing.T, size int64, before func(w http.ResponseWriter, r *http.Request) bool) (ref string, gets, sent *atomic.Int64) {
	t.Helper()
	gets, sent = new(atomic.Int64), new(atomic.Int64)
	digest := "sha256:" + strings.Repeat("a", 64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case before != nil && before(w, r):
		case strings.Contains(r.URL.Path, "/manifests/"):
			if r.Method == http.MethodGet {
				gets.Add(1)
			}
			text := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"size":%d,"digest":%q},"layers":[{"size":5,"digest":%q}]}`, media, size, digest, digest)
			w.Header().Set("Content-Type", media)
			w.Header().Set("Docker-Content-Digest", digest)
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			if r.Method == http.MethodGet {
				_, _ = io.WriteString(w, text)
			}
		case strings.Contains(r.URL.Path, "/blobs/"):
			for block := make([]byte, 1<<20); sent.Load() < size; {
				n, err := w.Write(block)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://") + "/a/b:latest", gets, sent
}

func newClient(t *testing.T, sizes bool) *Client {
	t.Helper()
	c, err := New("test", sizes)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestResponseLimit(t *testing.T) {
	ref, _, sent := serve(t, 1<<30, nil)
	_, err := newClient(t, false).Inspect(t.Context(), ref, commonPlatform)
	assert.ErrorContains(t, err, "longer than")
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d bytes were received", n)
	}
}

func TestPullLimit(t *testing.T) {
	for _, tt := range []struct {
		sizes bool
		left  string
		want  bool
	}{{true, "76;w=21600", true}, {true, "20;w=21600", false}, {true, "", false}, {false, "76;w=21600", false}} {
		ref, gets, _ := serve(t, 10, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("RateLimit-Limit", "100;w=21600")
			w.Header().Set("RateLimit-Remaining", tt.left)
			return false
		})
		_, _ = newClient(t, tt.sizes).Inspect(t.Context(), ref, commonPlatform) // the configuration is invalid
		assert.Equal(t, tt.want, gets.Load() > 0, "%+v: asked", tt)
	}
}

// TestCredentialsRenewed: if a registry rejects the credentials, the credential helper
// is called again.
func TestCredentialsRenewed(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	setHelper := func(p string) {
		write("docker-credential-minitest", "#!/bin/sh\n"+p+"\n")
	}
	var validPassword atomic.Value
	validPassword.Store("one")
	ref, _, _ := serve(t, 10, func(w http.ResponseWriter, r *http.Request) bool {
		if _, p, _ := r.BasicAuth(); p == validPassword.Load() {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="here"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	parsed, err := name.ParseReference(ref)
	require.NoError(t, err)
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	write("config.json", `{"credHelpers":{"`+parsed.Context().RegistryStr()+`":"minitest"}}`)
	c := newClient(t, false)
	for _, p := range []string{"one", "two"} {
		setHelper(`echo '{"Username":"ada","Secret":"` + p + `"}'`)
		validPassword.Store(p)
		_, err := c.Inspect(t.Context(), ref, commonPlatform) // the configuration is invalid
		if err == nil || strings.Contains(err.Error(), "Unauthorized") {
			t.Errorf("%s: %v", p, err)
		}
	}
	setHelper("echo broken; exit 1")
	failing := newClient(t, false)
	_, err = failing.RegistryAuth(context.WithoutCancel(t.Context()), ref)
	assert.Error(t, err, "RegistryAuth succeeded although the credential helper fails")
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-7":                            0,
		"soon":                          0,
		"Sat, 21 Nov 2026 10:01:00 GMT": time.Minute,
		"Sat, 21 Nov 2026 09:00:00 GMT": 0,
		"1795255260":                    time.Minute, // a Unix time, as sent by Docker Hub
		"99999999":                      maxRetryAfter,
		"99999999999999999999":          0,
	} {
		assert.Equal(t, want, parseRetryAfter(value, now), "Retry-After %q", value)
	}
}
