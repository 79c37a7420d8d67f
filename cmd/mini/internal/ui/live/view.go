package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/runner"
)

// Config configures a View.
type Config struct {
	// Terminal is where the view draws. Keys are read from standard input if that is a
	// terminal, else from the controlling terminal.
	Terminal *os.File
	Title    Title
	// Interrupt is called for each Ctrl-C: in raw mode the terminal sends no signals.
	Interrupt func()
	// RedirectMessages is called with ShowMessage before the view takes the terminal, and with
	// nil when the process moves to the background. It may be nil.
	RedirectMessages func(show func(text string))
	// Controller executes the orders that the user gives with keys.
	Controller Controller
}

// View shows a run on a terminal. Its methods are safe for concurrent use.
type View struct {
	board  sharedBoard
	config Config
	screen *terminal.Screen
	stop   context.CancelFunc // stops the goroutines of Start
	done   chan struct{}      // closed when the terminal has been restored
	err    error              // why the view ended; set before done is closed
	wg     sync.WaitGroup
}

// The board is redrawn at most every drawInterval, and at least every tickInterval, since it
// shows elapsed times.
const (
	drawInterval = 250 * time.Millisecond
	tickInterval = time.Second
	// maxFPS is how often Bubble Tea writes to the terminal; it bounds the delay after a key.
	maxFPS = 12
)

// Start takes the terminal. If that fails, Done is closed at once and Close returns the error.
func Start(c Config) *View {
	l := &View{board: sharedBoard{board: newBoard()}, config: c, done: make(chan struct{})}
	l.board.board.start = time.Now()
	if c.RedirectMessages == nil {
		l.config.RedirectMessages = func(func(string)) {}
	}
	l.screen = terminal.New(c.Terminal)
	l.screen.OnBackground = func(away bool) {
		if away {
			l.config.RedirectMessages(nil)
		} else {
			l.config.RedirectMessages(l.ShowMessage)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.config.RedirectMessages(l.ShowMessage)
	l.wg.Go(func() {
		defer close(l.done)
		if err := l.run(ctx); err != nil {
			l.err = fmt.Errorf("live view: %w", err)
		}
	})
	return l
}

// run draws until ctx ends. It starts a new Bubble Tea program each time the user returns from
// the background (Ctrl-Z, fg).
func (l *View) run(ctx context.Context) error {
	m := model{board: &l.board, interrupt: l.config.Interrupt, controller: l.config.Controller}
	m.frame.title, m.frame.now = l.config.Title, time.Now()
	return l.screen.Run(ctx, func(ctx context.Context, suspend func()) error {
		m.suspend = suspend
		var err error
		m, err = l.runProgram(ctx, m)
		return err
	})
}

// runProgram draws until ctx ends or the program fails. It returns the last model.
func (l *View) runProgram(ctx context.Context, m model) (model, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	program := tea.NewProgram(m, tea.WithOutput(l.config.Terminal), tea.WithoutSignalHandler(), tea.WithFPS(maxFPS))
	var wg sync.WaitGroup
	wg.Go(func() {
		defer program.Quit()
		l.sendRefreshes(ctx, program)
	})
	last, err := program.Run()
	leave()
	wg.Wait()
	if last, ok := last.(model); ok {
		m = last
	}
	return m, err
}

// sendRefreshes sends a refreshMsg when the board is due to be redrawn, until ctx ends.
func (l *View) sendRefreshes(ctx context.Context, program *tea.Program) {
	ticker := time.NewTicker(drawInterval)
	defer ticker.Stop()
	var drawn time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			l.board.mu.Lock()
			due := now.Sub(drawn) >= tickInterval || l.board.dirty
			l.board.mu.Unlock()
			if due {
				drawn = now.Truncate(tickInterval)
				providers, disk := l.config.Controller.Resources()
				program.Send(refreshMsg{now, resources{providers, disk}})
			}
		}
	}
}

// HandleEvent adds one event to the board. It does not block.
func (l *View) HandleEvent(e runner.Event) {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	l.board.board.handleEvent(e)
	l.board.dirty = true
}

// ShowMessage shows a message of mini until the next one.
func (l *View) ShowMessage(text string) {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	l.board.board.setMessage(text)
	l.board.dirty = true
}

// Done is closed when the terminal has been restored, by Close or after a failure.
func (l *View) Done() <-chan struct{} { return l.done }

// closeTimeout is how long Close waits for a terminal that blocks writes.
const closeTimeout = 3 * time.Second

// errTerminalBlocked means that writes to the terminal block.
var errTerminalBlocked = errors.New("live view: terminal blocks output")

// Close stops the view and restores the terminal. It returns the error that ended the view
// early, if any.
func (l *View) Close() error {
	l.stop()
	select {
	case <-l.done:
	case <-time.After(closeTimeout):
		l.screen.RestoreMode()
		return errTerminalBlocked
	}
	l.wg.Wait()
	return l.err
}
