package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/screen"
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
	// Desk takes the orders that keys are for.
	Desk Desk
}

// Live is a screen that shows a run. Its methods are safe for concurrent use.
type Live struct {
	shared shared
	config Config
	screen *screen.Screen
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
	l.screen = screen.New(c.Terminal)
	l.screen.Away = func(away bool) {
		if away {
			l.config.Taken(nil)
		} else {
			l.config.Taken(l.Say)
		}
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

// run has the screen until ctx ends, but for the times when the user has it
// back after Ctrl-Z. Each time a program of its own takes the screen.
func (l *Live) run(ctx context.Context) error {
	m := model{shared: &l.shared, interrupt: l.config.Interrupt, desk: l.config.Desk}
	m.frame.title, m.frame.now = l.config.Title, time.Now()
	return l.screen.Hold(ctx, func(ctx context.Context, suspend func()) error {
		m.suspend = suspend
		var err error
		m, err = l.show(ctx, m)
		return err
	})
}

// show draws until ctx ends or the view fails. It returns the model as it was
// then.
func (l *Live) show(ctx context.Context, m model) (model, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	program := tea.NewProgram(m, tea.WithOutput(l.config.Terminal), tea.WithoutSignalHandler(), tea.WithFPS(flushes))
	var wg sync.WaitGroup
	wg.Go(func() {
		defer program.Quit()
		l.refresh(ctx, program)
	})
	last, err := program.Run()
	leave()
	wg.Wait()
	if last, ok := last.(model); ok {
		m = last
	}
	return m, err
}

// refresh has the board drawn when it is due, until ctx ends.
func (l *Live) refresh(ctx context.Context, program *tea.Program) {
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	var drawn time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			l.shared.mu.Lock()
			due := now.Sub(drawn) >= tickEvery || l.shared.changed
			l.shared.mu.Unlock()
			if due {
				drawn = now.Truncate(tickEvery)
				providers, disk := l.config.Desk.Around()
				program.Send(refresh{now, around{providers, disk}})
			}
		}
	}
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

// patience is how long a terminal may take to show the end.
const patience = 3 * time.Second

// errStuck says that the terminal does not take what is written.
var errStuck = errors.New("live view: the terminal takes no output")

// Close gives the screen back. The error says why it ended before, if it did.
func (l *Live) Close() error {
	l.stop()
	select {
	case <-l.done:
	case <-time.After(patience):
		l.screen.Restore()
		return errStuck
	}
	l.wg.Wait()
	return l.err
}
