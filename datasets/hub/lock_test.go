package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/datasets/hub"
)

// Two at once download once: the second waits, says so, and finds it done.
func TestTwoFetchOnce(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	waiting := make(chan struct{})
	begun := make(chan struct{})
	once := true
	s.Throttle(100_000, func(int64) {
		if once {
			once = false
			close(begun)
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
	<-begun
	e, err := h2.Open(t.Context(), hub.Ref{Repo: repo})
	if err := errors.Join(err, group.Wait()); err != nil {
		t.Fatal(err)
	}
	same(t, e, files())
	asked := 0
	for _, r := range s.Requests() {
		if strings.Contains(r.Path, "/revision/") {
			asked++
		}
	}
	if n := len(s.Files(".parquet")); n != 2 || asked != 1 {
		t.Errorf("%d downloads of two files, and the commit asked for %d times", n, asked)
	}
}

func TestWaitingForAnotherCanBeCancelled(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	begun, release := make(chan struct{}), make(chan struct{})
	once := true
	s.Throttle(100_000, func(int64) {
		if once {
			once = false
			close(begun)
			<-release
		}
	})
	var group errgroup.Group
	h1 := open(t, hub.Config{Endpoint: s.URL, Dir: dir})
	group.Go(func() error {
		_, err := h1.Fetch(t.Context(), hub.Ref{Repo: repo})
		return err
	})
	<-begun
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	h2 := open(t, hub.Config{Endpoint: s.URL, Dir: dir, Progress: func(hub.Progress) { cancel(enough) }})
	if _, err := h2.Fetch(ctx, hub.Ref{Repo: repo}); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	close(release)
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
