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

	"github.com/google/go-containerregistry/pkg/name"
)

const (
	config = `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}`
	media  = "application/vnd.docker.distribution.manifest.v2+json"
)

// serve is a registry with one image, whose configuration is so long.
func serve(t *testing.T, size int64, before func(w http.ResponseWriter, q *http.Request) bool) (ref string, gets, sent *atomic.Int64) {
	t.Helper()
	gets, sent = new(atomic.Int64), new(atomic.Int64)
	digest := "sha256:" + strings.Repeat("a", 64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case before != nil && before(w, q):
		case strings.Contains(q.URL.Path, "/manifests/"):
			if q.Method == http.MethodGet {
				gets.Add(1)
			}
			text := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"size":%d,"digest":%q},"layers":[{"size":5,"digest":%q}]}`, media, size, digest, digest)
			w.Header().Set("Content-Type", media)
			w.Header().Set("Docker-Content-Digest", digest)
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			if q.Method == http.MethodGet {
				_, _ = io.WriteString(w, text)
			}
		case strings.Contains(q.URL.Path, "/blobs/"):
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestLongAnswersAreCut(t *testing.T) {
	ref, _, sent := serve(t, 1<<30, nil)
	if _, err := newClient(t, false).Inspect(t.Context(), ref, commonPlatform); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("err = %v", err)
	}
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

func TestCountedQuestionsAreAskedWhilePlentyAreLeft(t *testing.T) {
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
		_, _ = newClient(t, tt.sizes).Inspect(t.Context(), ref, commonPlatform) // the configuration is none
		if got := gets.Load() > 0; got != tt.want {
			t.Errorf("%+v: asked: %t", tt, got)
		}
	}
}

// A helper is asked again for what a registry does not take any more.
func TestCredentialsAreAskedForAgain(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	password := func(p string) {
		write("docker-credential-minitest", "#!/bin/sh\n"+p+"\n")
	}
	var takes atomic.Value
	takes.Store("one")
	ref, _, _ := serve(t, 10, func(w http.ResponseWriter, q *http.Request) bool {
		if _, p, _ := q.BasicAuth(); p == takes.Load() {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="here"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	write("config.json", `{"credHelpers":{"`+parsed.Context().RegistryStr()+`":"minitest"}}`)
	c := newClient(t, false)
	for _, p := range []string{"one", "two"} {
		password(`echo '{"Username":"ada","Secret":"` + p + `"}'`)
		takes.Store(p)
		if _, err := c.Inspect(t.Context(), ref, commonPlatform); err != nil && strings.Contains(err.Error(), "401") {
			t.Errorf("%s: %v", p, err)
		}
	}
	password("echo broken; exit 1")
	failing := newClient(t, false)
	if _, err := failing.RegistryAuth(context.WithoutCancel(t.Context()), ref); err == nil {
		t.Error("a helper that fails let us in")
	}
}
