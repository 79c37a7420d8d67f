package singleflight

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestFlightOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Group
		var runs atomic.Int32
		release := make(chan struct{})
		work := func(ctx context.Context) error {
			runs.Add(1)
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := f.Do(first, "k", work); !errors.Is(err, context.Canceled) {
				t.Errorf("who left got %v", err)
			}
		})
		synctest.Wait()
		for range 3 {
			wg.Go(func() {
				if err := f.Do(t.Context(), "k", work); err != nil {
					t.Errorf("who stayed got %v", err)
				}
			})
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		close(release)
		wg.Wait()
		if n := runs.Load(); n != 1 {
			t.Errorf("the work ran %d times", n)
		}
		if err := f.Do(t.Context(), "k", func(context.Context) error { return errors.New("again") }); err == nil {
			t.Error("a finished flight was joined")
		}
	})
}

func TestFlightEndsWithItsLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Group
		ended := false
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				err := f.Do(ctx, "k", func(ctx context.Context) error {
					<-ctx.Done()
					ended = true
					return ctx.Err()
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("err = %v", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		if !ended {
			t.Error("the work outlived those who wanted it")
		}
	})
}
