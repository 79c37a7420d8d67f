package imagestore_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/env/docker/registrytest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// limitFault returns a function for Registry.Inject that applies a fault to the first n
// matching requests.
func limitFault(n int32, match func(*http.Request) bool, f registrytest.Fault) func(*http.Request) *registrytest.Fault {
	var left atomic.Int32
	left.Store(n)
	return func(q *http.Request) *registrytest.Fault {
		if match(q) && left.Add(-1) >= 0 {
			return &f
		}
		return nil
	}
}

func TestTransientFaults(t *testing.T) {
	r := registrytest.Start(t)
	for name, tt := range map[string]struct {
		inject func(*http.Request) *registrytest.Fault
		kind   imagestore.EventKind // of an expected event; empty for none
		least  time.Duration        // minimum duration
	}{
		"too many requests, with a time": {
			limitFault(1, isManifest, registrytest.Fault{Status: 429, Header: map[string]string{"Retry-After": "1"}}), imagestore.RateLimited, time.Second,
		},
		"too many requests, to the engine only": {
			limitFault(6, isBlob, registrytest.Fault{Status: 429}), imagestore.RateLimited, 0,
		},
		"out of order": {limitFault(2, isManifest, registrytest.Fault{Status: 500}), imagestore.Retry, 0},
		"slow": {
			func(q *http.Request) *registrytest.Fault {
				if isBlob(q) {
					return &registrytest.Fault{Throughput: 400 << 10}
				}
				return nil
			}, "", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ref := r.Push(t, "mini-test/passing", registrytest.Image(t, "", registrytest.Layer(t, 200<<10)))
			registrytest.RemoveOnCleanup(t, dockertest.Client(t), ref)
			r.Inject(tt.inject)
			defer r.Inject(nil)
			s, events := open(t, imagestore.Config{})
			start := time.Now()
			_, release := ensure(t, s, ref)
			release()
			if took := time.Since(start); took < tt.least {
				t.Errorf("Ensure took %s, but the registry asked for a delay of %s", took, tt.least)
			}
			if tt.kind != "" && len(events.ofKind(tt.kind)) == 0 {
				t.Errorf("nobody was told: %+v", events.all)
			}
			for _, n := range events.all {
				t.Logf("%s: %s", n.Kind, n.Text)
			}
			removeImage(t, ref)
		})
	}
}

// removeImage removes an image now, because the next test case uses the same name.
func removeImage(t *testing.T, ref string) {
	t.Helper()
	registrytest.RemoveImages(dockertest.Client(t), ref)
}

func TestMaxRetryTime(t *testing.T) {
	r := registrytest.Start(t)
	ref := r.Push(t, "mini-test/limited", registrytest.Image(t, "", registrytest.Layer(t, 1<<10)))
	r.Inject(func(*http.Request) *registrytest.Fault { return &registrytest.Fault{Status: 429} })
	s, events := open(t, imagestore.Config{MaxRetryTime: 5 * time.Second})
	_, _, err := s.Ensure(t.Context(), imagestore.Request{Ref: ref})
	if status(err) != env.PullFailed || !strings.Contains(err.Error(), "429") && !strings.Contains(err.Error(), "TOOMANYREQUESTS") {
		t.Errorf("err = %v", err)
	}
	if len(events.ofKind(imagestore.RateLimited)) == 0 {
		t.Error("no event reports the wait")
	}
}

func TestPermanentFaults(t *testing.T) {
	r := registrytest.Start(t)
	other := r.Push(t, "mini-test/foreign", registrytest.Image(t, "s390x", registrytest.Layer(t, 1<<10)))
	both := r.PushIndex(t, "mini-test/foreigners", map[string]v1.Image{
		"s390x":   registrytest.Image(t, "s390x", registrytest.Layer(t, 1<<10)),
		"ppc64le": registrytest.Image(t, "ppc64le", registrytest.Layer(t, 1<<10)),
	})
	for name, tt := range map[string]struct {
		need imagestore.Request
		want env.Status
		text string
	}{
		"another platform":          {imagestore.Request{Ref: other}, env.ImageNotFound, "linux/s390x, and linux/"},
		"none of several platforms": {imagestore.Request{Ref: both}, env.ImageNotFound, "linux/ppc64le"},
		"unknown image":             {imagestore.Request{Ref: r.Host + "/mini-test/nothing"}, env.ImageNotFound, "nothing"},
		"no name":                   {imagestore.Request{Ref: "Not An Image"}, env.ImageNotFound, "Not An Image"},
		"no registry":               {imagestore.Request{Ref: "127.0.0.1:1/nobody/there"}, env.PullFailed, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := open(t, imagestore.Config{})
			before := countBlobRequests(r, "GET")
			_, _, err := s.Ensure(t.Context(), tt.need)
			if status(err) != tt.want || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("err = %v, want %s and %q", err, tt.want, tt.text)
			}
			if n := countBlobRequests(r, "GET") - before; n > 1 { // the configuration, for the platform
				t.Errorf("%d blobs were fetched", n)
			}
			t.Log(err)
		})
	}
}

func TestCredentials(t *testing.T) {
	r := registrytest.Start(t)
	ref := r.Push(t, "mini-test/private", registrytest.Image(t, "", registrytest.Layer(t, 1<<10)))
	registrytest.RemoveOnCleanup(t, dockertest.Client(t), ref)
	r.Inject(func(q *http.Request) *registrytest.Fault {
		if user, password, _ := q.BasicAuth(); user == "ada" && password == "lovelace-1843" {
			return nil
		}
		return &registrytest.Fault{Status: 401, Header: map[string]string{"WWW-Authenticate": `Basic realm="here"`}}
	})
	s, _ := open(t, imagestore.Config{})
	if _, _, err := s.Ensure(t.Context(), imagestore.Request{Ref: ref}); err == nil {
		t.Error("the registry accepted a request without credentials")
	} else {
		t.Log(err)
	}
	for name, write := range map[string]func(t *testing.T, dir string) string{
		"auths": func(_ *testing.T, _ string) string {
			return `{"auths":{"` + r.Host + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("ada:lovelace-1843")) + `"}}}`
		},
		"helper": func(t *testing.T, dir string) string {
			script := "#!/bin/sh\necho '{\"ServerURL\":\"x\",\"Username\":\"ada\",\"Secret\":\"lovelace-1843\"}'\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, "docker-credential-minitest"), []byte(script), 0o755))
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			return `{"credHelpers":{"` + r.Host + `":"minitest"}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, stateText := t.TempDir(), t.TempDir()
			t.Setenv("DOCKER_CONFIG", dir)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(write(t, dir)), 0o600))
			s, events := open(t, imagestore.Config{Dir: stateText})
			_, release := ensure(t, s, ref)
			release()
			removeImage(t, ref)
			for _, n := range events.all {
				if strings.Contains(n.Text, "lovelace") {
					t.Errorf("a password in a note: %s", n.Text)
				}
			}
			for _, file := range glob(t, stateText) {
				if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "lovelace") {
					t.Errorf("%s: %v, or a password in it", file, err)
				}
			}
		})
	}
}

func glob(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no state file in %s: %v", dir, err)
	}
	return files
}

// TestCancelPull: the end of the context ends a pull at once, and the engine's requests
// for it.
func TestCancelPull(t *testing.T) {
	r := registrytest.Start(t)
	ref := r.Push(t, "mini-test/interrupted", registrytest.Image(t, "", registrytest.Layer(t, 4<<20)))
	registrytest.RemoveOnCleanup(t, dockertest.Client(t), ref)
	var begun, ended atomic.Int32
	started := make(chan struct{})
	var once sync.Once
	r.Inject(func(q *http.Request) *registrytest.Fault {
		if !isBlob(q) || q.Method != http.MethodGet || !strings.Contains(q.UserAgent(), "docker/") {
			return nil
		}
		begun.Add(1)
		context.AfterFunc(q.Context(), func() { ended.Add(1) })
		once.Do(func() { close(started) })
		return &registrytest.Fault{Throughput: 100 << 10}
	})
	s, _ := open(t, imagestore.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	go func() {
		<-started
		cancel(interrupted)
	}()
	_, _, err := s.Ensure(ctx, imagestore.Request{Ref: ref})
	stopped := time.Now()
	assert.ErrorIs(t, err, interrupted)
	eventually(t, "the engine drops its requests", func() bool { return ended.Load() >= begun.Load() })
	t.Logf("the engine dropped %d request(s) %s after the interrupt", ended.Load(), time.Since(stopped).Round(time.Millisecond))
	if isPresent(t, dockertest.Client(t), ref) {
		t.Error("the image is present although the pull was cancelled")
	}
}
