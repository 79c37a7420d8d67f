package singleflight

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/minibench/mini/internal/assert"
)

func TestFirstCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
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
			assert.ErrorIs(t, g.Do(first, "k", work), context.Canceled, "the caller that left")
		})
		synctest.Wait()
		for range 3 {
			wg.Go(func() {
				if err := g.Do(t.Context(), "k", work); err != nil {
					t.Errorf("a waiting caller got %v", err)
				}
			})
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		close(release)
		wg.Wait()
		assert.Equal(t, 1, runs.Load(), "runs of the work")
		if err := g.Do(t.Context(), "k", func(context.Context) error { return errors.New("again") }); err == nil {
			t.Error("a call joined a finished run")
		}
	})
}

func TestLastCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		ended := false
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				err := g.Do(ctx, "k", func(ctx context.Context) error {
					<-ctx.Done()
					ended = true
					return ctx.Err()
				})
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		if !ended {
			t.Error("the work was not cancelled with its last caller")
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
