package screen

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
	"github.com/minibench/mini/cmd/mini/internal/chat"
	tty "github.com/minibench/mini/cmd/mini/internal/screen"
)

// Config says where a session is shown.
type Config struct {
	// Terminal is written to; keys come from standard input where that is a
	// terminal, else from the controlling terminal.
	Terminal *os.File
	// Environ says which colours the terminal has, and a pager has it but for
	// secrets; nil is os.Environ().
	Environ []string
	// History is what was sent in earlier sessions, oldest first; Remember is
	// called with what is sent in this one, one at a time; keys wait for it. Both
	// may be nil.
	History  []string
	Remember func(text string)
}

// Screen is a front on a terminal. Its methods are safe for concurrent use.
type Screen struct {
	config Config
	model  *model
	screen *tty.Screen
	stop   context.CancelFunc // ends what Start began
	done   chan struct{}      // closed when the screen has been given back
	err    error              // why that was, once done is closed
	wg     sync.WaitGroup
	hangup sync.Once
}

var _ chat.Front = (*Screen)(nil)

// Start takes the terminal. Where that fails the screen is done at once, questions
// end with ErrLeft, and Close says why.
func Start(c Config) *Screen {
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	s := &Screen{config: c, model: newModel(c.History, c.Remember), done: make(chan struct{})}
	s.screen = tty.New(c.Terminal)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.wg.Go(func() {
		defer close(s.done)
		if err := s.screen.Hold(ctx, s.show); err != nil {
			s.err = fmt.Errorf("screen: %w", err)
			s.hungUp()
		}
	})
	s.wg.Go(func() { s.listen(ctx) })
	return s
}

// hungUp says that nobody is there any more.
func (s *Screen) hungUp() { s.hangup.Do(func() { s.model.controls.now().Hangup() }) }

// Listen has others act on what the person does while no question is open.
func (s *Screen) Listen(c chat.Controls) { s.model.controls.listen(c) }

// quiet is the terminal as the program sees it: with a size and a mode, while
// what the program would draw goes nowhere. Only the painter writes, what is above
// and what is live as one piece, and may wait for the terminal where the program,
// which hears the keys, may not.
type quiet struct{ *os.File }

// Write implements io.Writer.
func (quiet) Write(p []byte) (int, error) { return len(p), nil }

// Close implements io.Closer: the terminal is not the program's to close.
func (quiet) Close() error { return nil }

// show has the terminal until ctx ends or the program fails.
func (s *Screen) show(ctx context.Context, suspend func()) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	m := s.model
	m.suspend = suspend
	m.fit(s.config.Terminal)
	program := tea.NewProgram(m, tea.WithOutput(quiet{s.config.Terminal}), tea.WithEnvironment(s.config.Environ),
		tea.WithoutSignalHandler(), tea.WithFPS(1))
	brush := newBrush(ctx, s.config)
	m.pager = brush.pager
	brush.start(m.canvas)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer program.Quit()
		m.feed.pass(ctx, program.Send)
	})
	_, err := program.Run()
	leave()
	wg.Wait()
	err = errors.Join(err, m.failure)
	if !brush.stop() {
		return errors.Join(err, errStuck)
	}
	return err
}

// fit takes the size of the terminal. The program learns it later than the painter
// begins, and it may have changed since the last page.
func (m *model) fit(terminal *os.File) {
	if w, h, err := term.GetSize(int(terminal.Fd())); err == nil {
		m.resize(w, h)
	}
	if m.canvas.painted() > 0 {
		m.publish()
	}
}

// pass tells the program of what arrives, and of each second, until ctx ends.
func (f *feed) pass(ctx context.Context, send func(tea.Msg)) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	send(arrived{})
	for {
		select {
		case <-ctx.Done():
			send(arrived{}) // the last of it
			return
		case <-ticker.C:
			send(tick{})
			continue
		case <-f.arrived:
		}
		send(arrived{})
		pause.Reset(drawEvery / 2)
		select { // what comes in the meantime is taken together
		case <-ctx.Done():
		case <-pause.C:
		}
	}
}

// colours is the terminal for the painter, with the colours that it has.
func colours(c Config) io.Writer {
	profile := colorprofile.Detect(c.Terminal, c.Environ)
	return &colorprofile.Writer{Forward: c.Terminal, Profile: max(profile, colorprofile.ASCII)}
}

// Ask implements chat.Front.
func (s *Screen) Ask(ctx context.Context, q chat.Question) (string, error) {
	a := &asked{Question: q, reply: make(chan answer, 1)}
	s.model.feed.push(a)
	select {
	case got := <-a.reply:
		return got.text, got.err
	case <-ctx.Done():
		s.model.feed.push(withdrawn{a})
		return "", context.Cause(ctx)
	case <-s.done:
		return "", chat.ErrLeft
	}
}

// Show implements chat.Front.
func (s *Screen) Show(e events.Stamped) { s.model.feed.push(e.Event) }

// Tell implements chat.Front.
func (s *Screen) Tell(n chat.Note) { s.model.feed.push(n) }

// State implements chat.Front.
func (s *Screen) State(state chat.State) { s.model.feed.setState(state) }

// Ended says that the screen has shown how the attempt ended.
func (s *Screen) Ended() bool {
	select {
	case <-s.done:
		return s.err == nil && s.model.ending.Load()
	default:
		return s.model.ending.Load()
	}
}

// Done is closed when the screen has been given back, by Close or because it was
// lost.
func (s *Screen) Done() <-chan struct{} { return s.done }

// patience is how long a terminal may take to show the end.
const patience = 3 * time.Second

// errStuck says that the terminal does not take what is written.
var errStuck = errors.New("the terminal takes no output")

// Close shows what came, and gives the terminal back. The error says why that was
// before, if it was.
func (s *Screen) Close() error {
	s.stop()
	select {
	case <-s.done:
	case <-time.After(patience + time.Second):
		s.screen.Restore()
		return fmt.Errorf("screen: %w", errStuck)
	}
	s.wg.Wait()
	if errors.Is(s.err, errStuck) {
		s.screen.Restore()
	}
	return s.err
}
