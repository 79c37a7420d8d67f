package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/screen"
)

// Config says what to show, and where.
type Config struct {
	Path string
	// Terminal is drawn on; keys come from standard input where that is a
	// terminal, else from the controlling terminal.
	Terminal  *os.File
	Filter    Filter
	Line      string // the filter as it was typed
	Sorting   Sorting
	All       bool
	Reasoning bool
	Colours   bool // the terminal has them, and they are wanted
}

// flushes bounds how late a key is answered: Bubble Tea writes to the terminal so
// many times a second at most.
const flushes = 30

// Run shows trajectories until the user has had enough, or ctx ends. Interrupts
// (SIGINT) end it too, but for those that are for a pager: while it runs, no other
// part of the program may be told of them.
func Run(ctx context.Context, c Config) error {
	src, err := OpenSource(c.Path)
	if err != nil {
		return err
	}
	m := &view{list: newList(), reasoning: c.Reasoning, colours: c.Colours, busy: &atomic.Bool{}}
	m.list.filter, m.list.line, m.list.all = c.Filter, c.Line, c.All
	if c.Sorting.By != "" {
		m.list.sorting = c.Sorting
	}
	if c.Filter.Text != "" {
		m.list.search.text, m.list.search.match, m.list.search.running = c.Filter.Text, newMatcher(c.Filter.Text), true
	}
	ctx, stop := interrupts(ctx, m.busy)
	defer stop()
	s := screen.New(c.Terminal)
	err = s.Hold(ctx, func(ctx context.Context, suspend func()) error {
		return m.show(ctx, c.Terminal, src, suspend)
	})
	if errors.Is(err, errInterrupted) {
		err = nil
	}
	if err == nil && len(m.list.items) == 0 && !m.list.walking && !m.list.live {
		return nothingOf(m.list.failed, c.Path)
	}
	return err
}

// errInterrupted ends the view as q does.
var errInterrupted = errors.New("interrupted")

// interrupts ends a context at SIGINT, but not while a pager has the screen.
func interrupts(ctx context.Context, busy *atomic.Bool) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Ignore(os.Interrupt) // nobody else hears of it from now on
	signal.Notify(signals, os.Interrupt)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
				if !busy.Load() {
					cancel(errInterrupted)
				}
			}
		}
	})
	return ctx, func() { signal.Stop(signals); cancel(nil); wg.Wait() }
}

// show draws until ctx ends or the user has had enough.
func (m *view) show(ctx context.Context, terminal *os.File, src *Source, suspend func()) error {
	m.suspend = suspend
	m.works = newWorks(ctx, src)
	program := tea.NewProgram(m, tea.WithOutput(terminal), tea.WithoutSignalHandler(), tea.WithFPS(flushes))
	m.works.send = program.Send
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	_, err := program.Run()
	m.works.end()
	switch {
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("show trajectories: %w", err)
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errInterrupted):
		return context.Cause(ctx)
	}
	return nil
}

// nothingOf says why there is nothing to show.
func nothingOf(failed error, path string) error {
	if failed != nil {
		return failed
	}
	return &ErrNothing{Path: path}
}
