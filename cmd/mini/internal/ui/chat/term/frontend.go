package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
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
	// History is the inputs of earlier sessions, oldest first; may be nil. Remember is called
	// with each input of this session, one call at a time; keys wait for it. It may be nil.
	History  []string
	Remember func(text string)
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
	s := &Frontend{config: c, model: newModel(c.History, c.Remember), done: make(chan struct{})}
	s.screen = tty.New(c.Terminal)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.wg.Go(func() {
		defer close(s.done)
		if err := s.screen.Run(ctx, s.show); err != nil {
			s.err = fmt.Errorf("screen: %w", err)
			s.notifyHangup()
		}
	})
	s.wg.Go(func() { s.watchHangup(ctx) })
	return s
}

// notifyHangup tells the input handler that the terminal is lost.
func (s *Frontend) notifyHangup() { s.hangupOnce.Do(func() { s.model.handler.get().Hangup() }) }

// Listen sets the handler of input that is not an answer.
func (s *Frontend) Listen(c chat.InputHandler) { s.model.handler.set(c) }

// silentTerminal is the terminal as Bubble Tea sees it: it has a size and a mode, and writes
// are discarded. Only the painter writes to the terminal. The painter may block; Bubble Tea,
// which reads the keys, may not.
type silentTerminal struct{ *os.File }

// Write implements io.Writer.
func (silentTerminal) Write(p []byte) (int, error) { return len(p), nil }

// Close implements io.Closer. It leaves the terminal open.
func (silentTerminal) Close() error { return nil }

// show draws until ctx ends or the program fails.
func (s *Frontend) show(ctx context.Context, suspend func()) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	m := s.model
	m.suspend = suspend
	m.updateSize(s.config.Terminal)
	program := tea.NewProgram(m, tea.WithOutput(silentTerminal{s.config.Terminal}), tea.WithEnvironment(s.config.Environ),
		tea.WithoutSignalHandler(), tea.WithFPS(1))
	brush := newPaintLoop(ctx, s.config)
	m.pager = brush.openPager
	brush.start(m.canvas)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer program.Quit()
		m.feed.forward(ctx, program.Send)
	})
	_, err := program.Run()
	leave()
	wg.Wait()
	err = errors.Join(err, m.failure)
	if !brush.stop() {
		return errors.Join(err, errTerminalBlocked)
	}
	return err
}

// updateSize reads the size of the terminal. The painter starts before Bubble Tea reports it,
// and it may have changed since the last page.
func (m *model) updateSize(terminal *os.File) {
	if w, h, err := term.GetSize(int(terminal.Fd())); err == nil {
		m.resize(w, h)
	}
	if m.canvas.painted() > 0 {
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
		select { // batch what arrives meanwhile
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

// Ask implements chat.Frontend.
func (s *Frontend) Ask(ctx context.Context, q chat.Question) (string, error) {
	a := &pendingQuestion{Question: q, reply: make(chan answer, 1)}
	s.model.feed.push(a)
	select {
	case got := <-a.reply:
		return got.text, got.err
	case <-ctx.Done():
		s.model.feed.push(questionWithdrawn{a})
		return "", context.Cause(ctx)
	case <-s.done:
		return "", chat.ErrQuit
	}
}

// ShowEvent implements chat.Frontend.
func (s *Frontend) ShowEvent(e events.Envelope) {
	if s.model.feed.waitForRoom(s.done) {
		s.model.feed.push(e.Event)
	}
}

// ShowNotice implements chat.Frontend.
func (s *Frontend) ShowNotice(n chat.Notice) { s.model.feed.push(n) }

// SetState implements chat.Frontend.
func (s *Frontend) SetState(state chat.State) { s.model.feed.setState(state) }

// HasShownOutcome reports whether the outcome of the attempt has been shown.
func (s *Frontend) HasShownOutcome() bool {
	select {
	case <-s.done:
		return s.err == nil && s.model.outcomeShown.Load()
	default:
		return s.model.outcomeShown.Load()
	}
}

// Done is closed when the terminal has been restored, by Close or after a failure.
func (s *Frontend) Done() <-chan struct{} { return s.done }

// closeTimeout is how long a terminal that blocks writes is waited for.
const closeTimeout = 3 * time.Second

// errTerminalBlocked means that writes to the terminal block.
var errTerminalBlocked = errors.New("terminal blocks output")

// Close shows the queued items and restores the terminal. It returns the error that ended the
// frontend early, if any.
func (s *Frontend) Close() error {
	s.stop()
	select {
	case <-s.done:
	case <-time.After(closeTimeout + time.Second):
		s.screen.RestoreMode()
		return fmt.Errorf("screen: %w", errTerminalBlocked)
	}
	s.wg.Wait()
	if errors.Is(s.err, errTerminalBlocked) {
		s.screen.RestoreMode()
	}
	return s.err
}
