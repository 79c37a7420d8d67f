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
	// Taken is called before the screen is taken, with what shows a message
	// there, and with nil when it was left and the run goes on in the
	// background. It may be nil.
	Taken func(say func(text string))
}

// Live is a screen that shows a run. Its methods are safe for concurrent use.
type Live struct {
	shared shared
	config Config
	guard  *guard
	stop   context.CancelFunc // ends what Start began
	done   chan struct{}      // closed when the screen has been given back
	err    error              // why that was, once done is closed
	wg     sync.WaitGroup
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
	l := &Live{shared: shared{board: newBoard()}, config: c, done: make(chan struct{})}
	l.shared.board.start = time.Now()
	if c.Taken == nil {
		l.config.Taken = func(func(string)) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.config.Taken(l.Say)
	l.wg.Go(func() {
		defer close(l.done)
		if err := l.run(ctx); err != nil {
			l.err = fmt.Errorf("live view: %w", err)
		}
	})
	return l
}

// Why a screen is given back before the end.
var (
	errGone      = errors.New("the terminal is gone")
	errSuspended = errors.New("the screen is left for the shell")
)

// run has the screen until ctx ends, but for the times when the user has it
// back after Ctrl-Z. Each time a program of its own takes the screen: in the
// background there is none, which could touch the terminal and be stopped.
func (l *Live) run(ctx context.Context) error {
	m := model{shared: &l.shared, interrupt: l.config.Interrupt}
	m.frame.title, m.frame.now = l.config.Title, time.Now()
	for {
		l.guard = startGuard(l.config.Terminal)
		var err error
		if m, err = l.show(ctx, m); !errors.Is(err, errSuspended) {
			return err
		}
		l.guard.dismiss()
		l.guard = nil
		stopGroup()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // Ctrl-Z came with the end, and is no failure
		}
		if back, err := l.background(ctx); err != nil || !back {
			return err
		}
	}
}

// show draws until ctx ends, the view fails, or Ctrl-Z: errSuspended. It
// returns the model as it was then.
func (l *Live) show(ctx context.Context, m model) (model, error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	if canStop {
		m.suspend = func() { leave(errSuspended) }
	}
	program := tea.NewProgram(m, tea.WithOutput(l.config.Terminal), tea.WithoutSignalHandler(), tea.WithFPS(flushes))
	var wg sync.WaitGroup
	wg.Go(func() {
		defer program.Quit()
		if l.refresh(ctx, program) {
			leave(errGone) // Bubble Tea would draw on
		}
	})
	last, err := program.Run()
	if err == nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		err = context.Cause(ctx)
	}
	leave(nil)
	wg.Wait()
	if last, ok := last.(model); ok {
		m = last
	}
	return m, err
}

// refresh has the board drawn when it is due, until ctx ends or the terminal
// is gone.
func (l *Live) refresh(ctx context.Context, program *tea.Program) (gone bool) {
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	var drawn time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case now := <-ticker.C:
			ticked := now.Sub(drawn) >= tickEvery
			if ticked && l.gone() {
				return true
			}
			l.shared.mu.Lock()
			due := ticked || l.shared.changed
			l.shared.mu.Unlock()
			if due {
				drawn = now.Truncate(tickEvery)
				program.Send(refresh{now})
			}
		}
	}
}

// background waits until this process may use the terminal again, which it may
// at once where the shell's fg has resumed it. back is false when ctx ended.
func (l *Live) background(ctx context.Context) (back bool, err error) {
	if Foreground(l.config.Terminal) {
		return true, nil
	}
	l.config.Taken(nil)
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	for !Foreground(l.config.Terminal) {
		select {
		case <-ctx.Done():
			return false, nil
		case <-ticker.C:
			if l.gone() {
				return false, errGone
			}
		}
	}
	l.config.Taken(l.Say)
	return true, nil
}

func (l *Live) gone() bool {
	_, _, err := term.GetSize(int(l.config.Terminal.Fd()))
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
	l.stop()
	select {
	case <-l.done:
	case <-time.After(patience):
		return errStuck
	}
	l.wg.Wait()
	l.guard.dismiss()
	return l.err
}
