package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/minibench/mini/runner"
)

// Config says where and what to show.
type Config struct {
	// Terminal is drawn on; keys come from standard input where that is a
	// terminal, else from the controlling terminal.
	Terminal *os.File
	Title    Title
	// Interrupt is called for each Ctrl-C: while the screen is taken, the
	// terminal makes no signals of keys.
	Interrupt func()
}

// Live is a screen that shows a run. Its methods are safe for concurrent use.
type Live struct {
	shared   shared
	terminal *os.File
	program  *tea.Program
	guard    *guard
	stop     context.CancelCauseFunc // ends what Start began
	done     chan struct{}           // closed when the screen has been given back
	err      error                   // why that was, once done is closed
	wg       sync.WaitGroup
}

// The screen is drawn when something changed, and so often at most; what only
// grows older is drawn each second.
const (
	drawEvery = 250 * time.Millisecond
	tickEvery = time.Second
	// flushes bounds how late a key is answered: Bubble Tea writes to the
	// terminal so many times a second at most.
	flushes = 12
)

// Start takes the screen. Where that fails the view is done at once, and Close
// says why.
func Start(c Config) *Live {
	l := &Live{shared: shared{board: newBoard()}, terminal: c.Terminal, done: make(chan struct{})}
	l.shared.board.start = time.Now()
	l.guard = startGuard(c.Terminal)
	m := model{shared: &l.shared, interrupt: c.Interrupt, suspend: l.suspend}
	m.frame.title, m.frame.now = c.Title, time.Now()
	l.program = tea.NewProgram(m, tea.WithOutput(c.Terminal), tea.WithoutSignalHandler(), tea.WithFPS(flushes))

	ctx, stop := context.WithCancelCause(context.Background())
	l.stop = stop
	l.wg.Go(func() {
		defer close(l.done)
		_, err := l.program.Run()
		stop(err)
		if err == nil && !errors.Is(context.Cause(ctx), context.Canceled) {
			err = context.Cause(ctx)
		}
		if err != nil {
			l.err = fmt.Errorf("live view: %w", err)
		}
	})
	l.wg.Go(func() { l.refresh(ctx) })
	return l
}

// errGone says that there is nothing to draw on any more.
var errGone = errors.New("the terminal is gone")

// refresh has the board drawn when it is due, until it is stopped.
func (l *Live) refresh(ctx context.Context) {
	defer l.program.Quit()
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	var drawn time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			ticked := now.Sub(drawn) >= tickEvery
			if ticked && l.gone() {
				l.stop(errGone) // Bubble Tea would draw on
				return
			}
			l.shared.mu.Lock()
			due := ticked || l.shared.changed
			l.shared.mu.Unlock()
			if due {
				drawn = now.Truncate(tickEvery)
				l.program.Send(refresh{now})
			}
		}
	}
}

func (l *Live) gone() bool {
	_, _, err := term.GetSize(int(l.terminal.Fd()))
	return err != nil
}

// Event takes in one event; it is quick.
func (l *Live) Event(e runner.Event) {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	l.shared.board.apply(e)
	l.shared.changed = true
}

// Say shows a message of mini's own until the next.
func (l *Live) Say(text string) {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	l.shared.board.say(text)
	l.shared.changed = true
}

// Done is closed when the screen has been given back, by Close or because the
// view failed.
func (l *Live) Done() <-chan struct{} { return l.done }

// patience is how long a terminal may take to show the end. One that takes
// nothing any more is left to the guard.
const patience = 3 * time.Second

// errStuck says that the terminal does not take what is written.
var errStuck = errors.New("live view: the terminal takes no output")

// Close gives the screen back. The error says why it ended before, if it did.
func (l *Live) Close() error {
	l.stop(nil)
	select {
	case <-l.done:
	case <-time.After(patience):
		return errStuck
	}
	l.wg.Wait()
	l.guard.dismiss()
	return l.err
}
