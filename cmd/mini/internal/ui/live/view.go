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
	"github.com/minibench/mini/runner/batch"
)

// Config configures a View.
type Config struct {
	// Terminal is where the view draws. Keys are read from standard input if that is a
	// terminal, else from the controlling terminal.
	Terminal *os.File
	// State is the state of the batch. The caller updates it with an event before HandleEvent.
	State *batch.State
	Title Title
	// Interrupt is called for each Ctrl-C, which sends no signal in raw mode.
	Interrupt func()
	// RedirectMessages is called with ShowMessage before the view takes the terminal, with nil
	// when the process moves to the background, and with ShowMessage when it returns. It may be
	// nil.
	RedirectMessages func(show func(text string))
	// Controller executes the orders that the user gives with keys. It is required.
	Controller Controller
}

// View shows a run on a terminal. Its methods are safe for concurrent use.
type View struct {
	board  *board
	config Config
	screen *terminal.Screen
	stop   context.CancelFunc // stops the goroutines of Start
	done   chan struct{}      // closed when the terminal has been restored
	err    error              // why the view ended; set before done is closed
	wg     sync.WaitGroup
}

// The view redraws the board at most every drawInterval after events, and about every tickInterval
// without events because the board shows elapsed times. Keys also redraw it.
const (
	drawInterval = 250 * time.Millisecond
	tickInterval = time.Second
	// maxFPS is how often per second Bubble Tea writes to the terminal at most. It determines the
	// delay after a key.
	maxFPS = 12
)

// Start takes the terminal. If that fails, Done is closed at once and Close returns the error.
func Start(c Config) *View {
	v := &View{board: newBoard(c.State), config: c, done: make(chan struct{})}
	if c.RedirectMessages == nil {
		v.config.RedirectMessages = func(func(string)) {}
	}
	v.screen = terminal.New(c.Terminal)
	v.screen.OnBackground = func(inBackground bool) {
		if inBackground {
			v.config.RedirectMessages(nil)
		} else {
			v.config.RedirectMessages(v.ShowMessage)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	v.stop = stop
	v.config.RedirectMessages(v.ShowMessage)
	v.wg.Go(func() {
		defer close(v.done)
		if err := v.run(ctx); err != nil {
			v.err = fmt.Errorf("live view: %w", err)
		}
	})
	return v
}

// run draws until ctx ends. It starts a new Bubble Tea program each time the user brings the
// process back to the foreground.
func (v *View) run(ctx context.Context) error {
	m := model{board: v.board, interrupt: v.config.Interrupt, controller: v.config.Controller}
	m.frame.title, m.frame.now = v.config.Title, time.Now()
	return v.screen.Run(ctx, func(ctx context.Context, suspend func()) error {
		m.suspend = suspend
		var err error
		m, err = v.runProgram(ctx, m)
		return err
	})
}

// runProgram draws until ctx ends or the program fails. It returns the last model.
func (v *View) runProgram(ctx context.Context, m model) (model, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program := tea.NewProgram(m, tea.WithOutput(v.config.Terminal), tea.WithoutSignalHandler(), tea.WithFPS(maxFPS))
	var wg sync.WaitGroup
	wg.Go(func() {
		defer program.Quit()
		v.sendRefreshes(ctx, program)
	})
	last, err := program.Run()
	cancel()
	wg.Wait()
	if last, ok := last.(model); ok {
		m = last
	}
	return m, err
}

// sendRefreshes sends a refreshMsg when the board is due to be redrawn, until ctx ends.
func (v *View) sendRefreshes(ctx context.Context, program *tea.Program) {
	ticker := time.NewTicker(drawInterval)
	defer ticker.Stop()
	var drawn time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			v.board.Lock()
			due := now.Sub(drawn) >= tickInterval || v.board.dirty
			v.board.Unlock()
			if due {
				drawn = now.Truncate(tickInterval)
				providers, disk := v.config.Controller.Resources()
				program.Send(refreshMsg{now, resources{providers, disk}})
			}
		}
	}
}

// HandleEvent shows an event, with which the state was updated. It does not block.
func (v *View) HandleEvent(e runner.Event) {
	v.board.Lock()
	defer v.board.Unlock()
	v.board.handleEvent(e)
}

// ShowMessage shows a message of mini in the footer until the next message.
func (v *View) ShowMessage(text string) {
	v.board.Lock()
	defer v.board.Unlock()
	v.board.setMessage(text)
}

// Done is closed when the terminal has been restored, by Close or after a failure.
func (v *View) Done() <-chan struct{} { return v.done }

// closeTimeout is how long Close waits for a terminal that blocks writes.
const closeTimeout = 3 * time.Second

// errTerminalBlocked means that writes to the terminal block.
var errTerminalBlocked = errors.New("live view: terminal blocks output")

// Close stops the view and restores the terminal. It returns the error that ended the view
// early, or an error if the terminal blocks writes.
func (v *View) Close() error {
	v.stop()
	select {
	case <-v.done:
	case <-time.After(closeTimeout):
		v.screen.RestoreMode()
		return errTerminalBlocked
	}
	v.wg.Wait()
	return v.err
}
