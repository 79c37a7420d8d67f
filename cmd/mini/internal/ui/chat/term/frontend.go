package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// Config configures a Frontend.
type Config struct {
	// Terminal is written to. Keys are read from standard input if that is a terminal, else
	// from the controlling terminal.
	Terminal *os.File
	// Environ determines the colours of the terminal; nil is os.Environ().
	Environ []string
	// History is the inputs of earlier sessions, oldest first; may be nil.
	History []string
	// Draft is the initial text of the input field.
	Draft string
	// SaveInput is called with each input that the user submits, except secrets, one call at a
	// time; may be nil. Keys are not handled until it returns.
	SaveInput func(text string)
	// Paths returns the paths that are completed after @. It is called once, when the user types
	// the first one, on a goroutine that is not waited for; ctx ends with the frontend. nil if
	// there are none.
	Paths func(ctx context.Context) []string
}

// Frontend is a chat.Frontend on a terminal. Its methods are safe for concurrent use.
type Frontend struct {
	config     Config
	model      *model
	screen     *tty.Screen
	stop       context.CancelFunc // stops the goroutines of Start
	done       chan struct{}      // closed when the terminal has been restored
	err        error              // why the frontend ended; set before done is closed
	wg         sync.WaitGroup
	hangupOnce sync.Once
}

var _ chat.Frontend = (*Frontend)(nil)

// Start takes the terminal. If that fails, Done is closed at once, questions return ErrQuit,
// and Close returns the error.
func Start(c Config) *Frontend {
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	f := &Frontend{config: c, done: make(chan struct{})}
	f.model = newModel(c, newScreen(colourWriter(c), reflowsLines(c.Environ), nil))
	f.model.input.set(c.Draft)
	f.screen = tty.New(c.Terminal)
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.wg.Go(func() {
		defer close(f.done)
		if err := f.screen.Run(ctx, f.show); err != nil {
			f.err = fmt.Errorf("screen: %w", err)
			f.notifyHangup()
		}
	})
	f.wg.Go(func() { f.watchHangup(ctx) })
	return f
}

// notifyHangup tells the input handler, once, that the terminal is lost.
func (f *Frontend) notifyHangup() { f.hangupOnce.Do(func() { f.model.handler.get().Hangup() }) }

// HandleInput sets the handler for input that is not an answer.
func (f *Frontend) HandleInput(handler chat.InputHandler) { f.model.handler.set(handler) }

// discardTerminal is the terminal for Bubble Tea: it has a size and a mode, but discards writes.
// Only screen writes to the terminal, because a write may block and Bubble Tea must
// continue to read keys.
type discardTerminal struct{ *os.File }

// Write implements io.Writer.
func (discardTerminal) Write(p []byte) (int, error) { return len(p), nil }

// Close implements io.Closer. It leaves the terminal open.
func (discardTerminal) Close() error { return nil }

// show draws until ctx ends or the program fails.
func (f *Frontend) show(ctx context.Context, suspend func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := f.model
	m.suspend = suspend
	m.updateSize(f.config.Terminal)
	program := tea.NewProgram(m, tea.WithOutput(discardTerminal{f.config.Terminal}), tea.WithEnvironment(f.config.Environ),
		tea.WithoutSignalHandler(), tea.WithFPS(1))
	m.pager = func(text string) tea.Cmd { return m.screen.openPager(ctx, f.config, text) }
	m.listPaths = nil
	if f.config.Paths != nil {
		m.listPaths = func() tea.Msg { return pathsMsg(f.config.Paths(ctx)) }
	}
	m.screen.start()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer program.Quit()
		m.feed.forward(ctx, program.Send)
	})
	_, err := program.Run()
	ended := errors.Is(context.Cause(ctx), context.Canceled) // and not suspended
	cancel()
	wg.Wait()
	if ended {
		m.transcript.Flush()
		m.publish()
	}
	err = errors.Join(err, m.failure)
	if !m.screen.stop() {
		return errors.Join(err, errTerminalBlocked)
	}
	return err
}

// updateSize sets the size to that of the terminal. The screen starts before Bubble Tea
// reports the size, which may have changed since the last page.
func (m *model) updateSize(terminal *os.File) {
	if w, h, err := term.GetSize(int(terminal.Fd())); err == nil {
		m.resize(w, h)
	}
	if m.screen.isVisible(1) {
		m.publish()
	}
}

// drawInterval is the minimum time between redraws for arriving items.
const drawInterval = 80 * time.Millisecond

// forward sends a feedMsg when items arrive and a tickMsg every second, until ctx ends.
func (f *feed) forward(ctx context.Context, send func(tea.Msg)) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	send(feedMsg{})
	for {
		select {
		case <-ctx.Done():
			send(feedMsg{}) // the last items
			return
		case <-ticker.C:
			send(tickMsg{})
			continue
		case <-f.ready:
		}
		send(feedMsg{})
		pause.Reset(drawInterval)
		select { // handle the items that arrive meanwhile in one batch
		case <-ctx.Done():
		case <-pause.C:
		}
	}
}

// colourWriter returns a writer to the terminal that drops the colours it does not support.
func colourWriter(c Config) io.Writer {
	profile := colorprofile.Detect(c.Terminal, c.Environ)
	return &colorprofile.Writer{Forward: c.Terminal, Profile: max(profile, colorprofile.ASCII)}
}

// reflowsLines reports whether the terminal rewraps existing lines when it becomes narrower.
// Most terminals do.
func reflowsLines(environ []string) bool {
	for _, v := range environ {
		if strings.HasPrefix(v, "XTERM_VERSION=") || strings.HasPrefix(v, "STY=") || v == "TERM=linux" {
			return false
		}
	}
	return true
}

// Ask implements chat.Frontend.
func (f *Frontend) Ask(ctx context.Context, q chat.Question) (string, error) {
	pending := &pendingQuestion{Question: q, reply: make(chan answer, 1)}
	f.model.feed.push(pending)
	select {
	case result := <-pending.reply:
		return result.text, result.err
	case <-ctx.Done():
		f.model.feed.push(questionWithdrawn{pending})
		return "", context.Cause(ctx)
	case <-f.done:
		return "", chat.ErrQuit
	}
}

// ShowEvent implements chat.Frontend.
func (f *Frontend) ShowEvent(e events.Envelope) {
	if f.model.feed.waitForRoom(f.done) {
		f.model.feed.push(events.Content(e.Event))
	}
}

// ShowNotice implements chat.Frontend.
func (f *Frontend) ShowNotice(n chat.Notice) { f.model.feed.push(n) }

// SetState implements chat.Frontend.
func (f *Frontend) SetState(state chat.State) { f.model.feed.setState(state) }

// HasShownOutcome reports whether the outcome of the attempt has been shown.
func (f *Frontend) HasShownOutcome() bool {
	select {
	case <-f.done:
		return f.err == nil && f.model.outcomeShown.Load()
	default:
		return f.model.outcomeShown.Load()
	}
}

// Draft returns the text of the input field after Done.
func (f *Frontend) Draft() string {
	select {
	case <-f.done:
		return f.model.input.value()
	default:
		return ""
	}
}

// Done is closed when the terminal has been restored, by Close or after a failure.
func (f *Frontend) Done() <-chan struct{} { return f.done }

// closeTimeout is how long waitForRoom and screen.stop wait for a terminal that blocks writes.
// Close waits one second longer.
const closeTimeout = 3 * time.Second

// errTerminalBlocked means that writes to the terminal block.
var errTerminalBlocked = errors.New("terminal blocks output")

// Close shows the queued items and restores the terminal. It returns the error that ended the
// frontend early, or an error if the terminal blocks writes.
func (f *Frontend) Close() error {
	f.stop()
	select {
	case <-f.done:
	case <-time.After(closeTimeout + time.Second):
		f.screen.RestoreMode()
		return fmt.Errorf("screen: %w", errTerminalBlocked)
	}
	f.wg.Wait()
	if errors.Is(f.err, errTerminalBlocked) {
		f.screen.RestoreMode()
	}
	return f.err
}

// inputHandler holds a chat.InputHandler. Until set is called, it ignores input.
type inputHandler struct {
	handler atomic.Pointer[chat.InputHandler]
}

func (h *inputHandler) set(handler chat.InputHandler) { h.handler.Store(&handler) }

func (h *inputHandler) get() chat.InputHandler {
	if handler := h.handler.Load(); handler != nil {
		return *handler
	}
	return ignoreInput{}
}

// ignoreInput ignores all input.
type ignoreInput struct{}

// Input implements chat.InputHandler.
func (ignoreInput) Input(string) {}

// Interrupt implements chat.InputHandler.
func (ignoreInput) Interrupt() {}

// Hangup implements chat.InputHandler.
func (ignoreInput) Hangup() {}
