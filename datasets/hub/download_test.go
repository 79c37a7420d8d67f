package hub_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/datasets/hub/hubtest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// With network faults, a fetch starts a download again once, or fails; it never returns wrong
// data.
func TestFaults(t *testing.T) {
	tests := []struct {
		name  string
		fault func(*hubtest.Server)
		want  string
		gets  int // of shard 0
	}{
		{"cut once", func(s *hubtest.Server) { s.Truncate(2, 100_000) }, "", 2}, // the first cut applies to the card, which is shorter
		{"cut twice", func(s *hubtest.Server) { s.Truncate(3, 100_000) }, "was lost: unexpected EOF", 2},
		{"cut before the first byte", func(s *hubtest.Server) { s.Truncate(99, 0) }, "cannot be reached: EOF", 0},
		{"damaged once", func(s *hubtest.Server) { s.Corrupt(1) }, "", 1},
		{"damaged for good", func(s *hubtest.Server) { s.Corrupt(99) }, "arrived damaged", 0},
		{"busy", func(s *hubtest.Server) { s.Refuse(1, 503) }, "", 1},
		{"broken", func(s *hubtest.Server) { s.Refuse(99, 500) }, "answers 500", 0},
		{"refused for good", func(s *hubtest.Server) { s.Refuse(1, 418) }, "answers 418", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := server(t)
			dir := t.TempDir()
			h := open(t, hub.Config{Endpoint: s.URL, Dir: dir})
			tt.fault(s)
			e, err := h.Fetch(t.Context(), hub.Ref{Repo: repo})
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, want %q", err, tt.want)
			}
			if err == nil {
				checkFiles(t, e, files())
			} else if list, err := h.Cached(); len(list) > 0 || err != nil {
				t.Errorf("recorded despite the error: %+v, %v", list, err)
			}
			assert.Equal(t, tt.gets, len(s.Downloads(shard0)), "requests for the first shard")
			assert.Equal(t, "", strings.Join(leftovers(t, dir), " "), "left behind")
		})
	}
}

// A connection that stalls is closed, and the download starts again.
func TestStalledConnection(t *testing.T) {
	s := server(t)
	release := make(chan struct{})
	stalled := false
	s.Throttle(100_000, func(sent int64) {
		if sent >= 200_000 && !stalled {
			stalled = true
			<-release
		}
	})
	var once sync.Once
	h := open(t, hub.Config{Endpoint: s.URL, Progress: func(p hub.Progress) {
		if p.Stage == hub.Retrying {
			once.Do(func() { close(release) })
		}
	}})
	h.Stall(time.Second)
	checkFiles(t, fetch(t, h, hub.Ref{Repo: repo}), files())
	if len(s.Downloads(shard0)) < 2 {
		t.Errorf("%+v", s.Downloads(shard0))
	}
}

// The token is sent only to the hub: not to its file store (hubtest fails the test if it
// is), and not to the target of a redirect. It is written to no file and no error.
func TestTokenStaysWithTheHub(t *testing.T) {
	const token = "hf_verysecrettoken"
	s := server(t)
	s.SetToken(token)
	s.SetPrivate(repo)
	other := server(t) // rejects tokens
	dir := t.TempDir()
	h := open(t, hub.Config{Endpoint: s.URL, Dir: dir, Token: token + "\n"})
	checkFiles(t, fetch(t, h, hub.Ref{Repo: repo}), files())
	for _, r := range s.Requests() {
		if r.Authorized == r.CDN {
			t.Errorf("%+v", r)
		}
	}
	s.Refuse(1, http.StatusTemporaryRedirect, "Location", other.URL+"/api/datasets/"+repo+"/revision/main")
	_, err := h.Fetch(t.Context(), hub.Ref{Repo: repo})
	if err != nil {
		t.Error(err)
	}
	if log := other.Requests(); len(log) != 1 || log[0].Authorized {
		t.Errorf("another host saw %+v", log)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil || strings.Contains(string(text), token) || strings.Contains(string(text), "secret-signature") {
				t.Errorf("%s has a secret in it, or %v", path, err)
			}
		}
		return err
	})
	require.NoError(t, err)
}

// Of two concurrent fetches, only one downloads a file. The other reports that it waits, and
// then uses the downloaded file.
func TestTwoFetchOnce(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	waiting := make(chan struct{})
	started := make(chan struct{})
	first := true
	s.Throttle(100_000, func(int64) {
		if first {
			first = false
			close(started)
			<-waiting
		}
	})
	h1 := open(t, hub.Config{Endpoint: s.URL, Dir: dir})
	h2 := open(t, hub.Config{Endpoint: s.URL, Dir: dir, Progress: func(p hub.Progress) {
		if p.Stage == hub.Waiting && p.Repo == repo {
			close(waiting)
		}
	}})
	var group errgroup.Group
	group.Go(func() error {
		_, err := h1.Open(t.Context(), hub.Ref{Repo: repo})
		return err
	})
	<-started
	e, err := h2.Open(t.Context(), hub.Ref{Repo: repo})
	require.NoError(t, errors.Join(err, group.Wait()))
	checkFiles(t, e, files())
	assert.Equal(t, 2, len(s.Downloads(".parquet")), "downloads of two files")
}

func TestWaitingForAnotherCanBeCancelled(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	started, release := make(chan struct{}), make(chan struct{})
	first := true
	s.Throttle(100_000, func(int64) {
		if first {
			first = false
			close(started)
			<-release
		}
	})
	var group errgroup.Group
	h1 := open(t, hub.Config{Endpoint: s.URL, Dir: dir})
	group.Go(func() error {
		_, err := h1.Fetch(t.Context(), hub.Ref{Repo: repo})
		return err
	})
	<-started
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	h2 := open(t, hub.Config{Endpoint: s.URL, Dir: dir, Progress: func(p hub.Progress) {
		if p.Stage == hub.Waiting {
			cancel(enough)
		}
	}})
	_, err := h2.Fetch(ctx, hub.Ref{Repo: repo})
	assert.ErrorIs(t, err, enough)
	close(release)
	assert.NoError(t, group.Wait())
}
