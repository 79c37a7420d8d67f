package hub_test

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/datasets/hub"
)

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
	if err := errors.Join(err, group.Wait()); err != nil {
		t.Fatal(err)
	}
	checkFiles(t, e, files())
	if n := len(s.Downloads(".parquet")); n != 2 {
		t.Errorf("%d downloads of two files", n)
	}
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
	if _, err := h2.Fetch(ctx, hub.Ref{Repo: repo}); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	close(release)
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
