package inspect

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sync/errgroup"
)

// works is all input and output of the view, done beside it. Its owner ends it.
type works struct {
	ctx    context.Context //nolint:containedctx // it is the view's, as long as the screen is taken
	cancel context.CancelFunc
	send   func(tea.Msg)
	source *Source

	mu    sync.Mutex
	ended bool
	wg    sync.WaitGroup
	walks sync.Mutex // one at a time
}

func newWorks(ctx context.Context, source *Source) *works {
	w := &works{source: source}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// end waits for all that was begun.
func (w *works) end() {
	w.cancel()
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.wg.Wait()
}

// do makes a command of something that takes its time.
func (w *works) do(f func() tea.Msg) tea.Cmd {
	return func() tea.Msg {
		w.mu.Lock()
		if w.ended {
			w.mu.Unlock()
			return nil
		}
		w.wg.Add(1)
		w.mu.Unlock()
		defer w.wg.Done()
		return f()
	}
}

// Messages of the works.
type (
	found  Batch
	walked struct{ err error }
	opened struct {
		item  *Item
		t     *Trajectory
		err   error
		again bool
	}
	logged struct {
		item     *Item
		sections []*Section
	}
	searched struct {
		number      int
		hits        map[string]int
		done, total int
		failed      int // files that could not be read
	}
	ticked  struct{}
	changed struct {
		item *Item
		yes  bool
	}
	seenAt struct {
		of sought
		at spot
		ok bool
	}
	paged struct{ err error }
)

// tellEvery bounds how often the view hears of progress.
const tellEvery = 100 * time.Millisecond

// walk goes through the source and tells of what it finds, a few times a second.
func (w *works) walk() tea.Cmd {
	return w.do(func() tea.Msg {
		w.walks.Lock()
		defer w.walks.Unlock()
		var b Batch
		var last time.Time
		flush := func() {
			w.send(found(b))
			b, last = Batch{Live: b.Live}, time.Now()
		}
		err := w.source.Walk(w.ctx, func(next Batch) error {
			b.Items, b.Notes = append(b.Items, next.Items...), append(b.Notes, next.Notes...)
			b.Files, b.Live = next.Files, b.Live || next.Live
			if time.Since(last) >= tellEvery {
				flush()
			}
			return nil
		})
		if w.ctx.Err() != nil {
			return nil
		}
		flush()
		return walked{err}
	})
}

func (w *works) open(it *Item, again bool) tea.Cmd {
	return w.do(func() tea.Msg {
		t, err := Open(it)
		return opened{it, t, err, again}
	})
}

func (w *works) log(t *Trajectory) tea.Cmd {
	return w.do(func() tea.Msg { return logged{t.Item, testLog(t)} })
}

func (w *works) look(t *Trajectory) tea.Cmd {
	return w.do(func() tea.Msg { return changed{t.Item, t.changed()} })
}

func (w *works) tick() tea.Cmd {
	return w.do(func() tea.Msg {
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-w.ctx.Done():
			return nil
		case <-timer.C:
			return ticked{}
		}
	})
}

// find looks for the next match within a trajectory.
func (w *works) find(t *Trajectory, m *matcher, from spot, by int, of sought) tea.Cmd {
	return w.do(func() tea.Msg {
		at, ok := t.find(m, from, by)
		return seenAt{of, at, ok}
	})
}

// search goes through trajectories, several at once, until stop is called.
func (w *works) search(number int, items []*Item, m *matcher) (cmd tea.Cmd, stop context.CancelFunc) {
	ctx, stop := context.WithCancel(w.ctx)
	return w.do(func() tea.Msg {
		defer stop()
		var mu sync.Mutex
		now := searched{number: number, hits: map[string]int{}, total: len(items)}
		var last time.Time
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(max(1, runtime.GOMAXPROCS(0)))
		for _, it := range items {
			if ctx.Err() != nil {
				break
			}
			group.Go(func() error {
				n, err := Search(ctx, it, m)
				mu.Lock()
				defer mu.Unlock()
				now.done++
				if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, fs.ErrNotExist) {
					now.failed++
				}
				if n > 0 {
					now.hits[it.key()] = n
				}
				if time.Since(last) >= tellEvery {
					last = time.Now()
					told := now
					now.hits = map[string]int{}
					w.send(told)
				}
				return nil
			})
		}
		_ = group.Wait() // nothing in it fails
		return now
	}), stop
}
