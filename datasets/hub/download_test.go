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

	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/datasets/hub/hubtest"
)

// With network faults, a fetch retries or fails; it never returns wrong data.
func TestFaults(t *testing.T) {
	tests := []struct {
		name  string
		fault func(*hubtest.Server)
		want  error
		gets  int // of shard 0; 0 for any number
	}{
		{"cut once", func(s *hubtest.Server) { s.Truncate(2, 100_000) }, nil, 2}, // the first cut applies to the card, which is shorter
		{"cut often, each time further on", func(s *hubtest.Server) { s.Truncate(20, 20_000) }, nil, 0},
		{"cut often, from the start each time", func(s *hubtest.Server) { s.IgnoreRanges(true); s.Truncate(50, 100_000) }, hub.ErrUnreachable, hub.MaxTries},
		{"cut before the first byte, too often", func(s *hubtest.Server) { s.Truncate(99, 0) }, hub.ErrUnreachable, 0},
		{"no ranges", func(s *hubtest.Server) { s.IgnoreRanges(true); s.Truncate(2, 100_000) }, nil, 0},
		{"damaged once", func(s *hubtest.Server) { s.Corrupt(2) }, nil, 0},
		{"damaged for good", func(s *hubtest.Server) { s.Corrupt(99) }, hub.ErrCorrupt, 2},
		{"busy", func(s *hubtest.Server) { s.Refuse(4, 503) }, nil, 0},
		{"broken", func(s *hubtest.Server) { s.Refuse(99, 500) }, hub.ErrUnreachable, 0},
		{"refused for good", func(s *hubtest.Server) { s.Refuse(1, 418) }, hub.ErrResponse, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := server(t)
			dir := t.TempDir()
			h := open(t, hub.Config{Endpoint: s.URL, Dir: dir})
			tt.fault(s)
			e, err := h.Fetch(t.Context(), hub.Ref{Repo: repo})
			if !errors.Is(err, tt.want) || (err != nil) != (tt.want != nil) {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			if err == nil {
				checkFiles(t, e, files())
			} else if list, err := h.Cached(); len(list) > 0 || err != nil {
				t.Errorf("recorded despite the error: %+v, %v", list, err)
			}
			if n := len(s.Downloads(shard0)); tt.gets > 0 && n != tt.gets {
				t.Errorf("%d requests for the first shard, want %d", n, tt.gets)
			}
		})
	}
}

func TestResumesWhereItStopped(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	s.Truncate(2, 150_000) // the first cut applies to the card, which is shorter
	h := open(t, hub.Config{Endpoint: s.URL, Dir: dir, Progress: func(p hub.Progress) {
		if p.Stage == hub.Retrying {
			cancel(enough)
		}
	}})
	if _, err := h.Fetch(ctx, hub.Ref{Repo: repo}); !errors.Is(err, enough) {
		t.Fatalf("cancelled: %v", err)
	}
	s.ResetRequests()
	var first hub.Progress
	h = open(t, hub.Config{Endpoint: s.URL, Dir: dir, Progress: func(p hub.Progress) {
		if p.Stage == hub.Downloading && first.Stage == "" {
			first = p
		}
	}})
	checkFiles(t, fetch(t, h, hub.Ref{Repo: repo}), files())
	gets := s.Downloads(shard0)
	if len(gets) != 1 || gets[0].Status != http.StatusPartialContent || gets[0].Range != "bytes=150000-" {
		t.Errorf("%+v: want one request for the rest", gets)
	}
	if first.Bytes != 150_000 || first.Total != 500_001 {
		t.Errorf("%+v: the progress must include the partial file", first)
	}
}

// A connection that stalls is closed, and the download continues on a new one.
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
	must(t, err)
}
