// Package screen takes the screen of a terminal and gives it back: at the end,
// at Ctrl-Z until the shell's fg brings it back, and when the terminal goes
// away. A process that is killed gives nothing back; reset, or stty sane, does.
//
//	s := screen.New(os.Stderr)
//	err := s.Hold(ctx, func(ctx context.Context, suspend func()) error { ... })
package screen

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Why a screen is given back before the end.
var (
	// ErrGone says that the terminal is not there any more.
	ErrGone      = errors.New("the terminal is gone")
	errSuspended = errors.New("the screen is left for the shell")
)

// Whether a terminal is still there is looked at so often, and whether a job in
// the background may use it.
const (
	goneEvery = time.Second
	lookEvery = 250 * time.Millisecond
)

// Screen is that of a terminal.
type Screen struct {
	// Away is called with true when the screen was left and this process is in
	// the background, and with false when it comes back from there. It may be nil.
	Away func(away bool)

	terminal *os.File
	before   *term.State // nil where it is no terminal
}

// New is for a terminal.
func New(terminal *os.File) *Screen {
	before, _ := term.GetState(int(terminal.Fd())) // nil where it is none
	return &Screen{terminal: terminal, before: before}
}

// Restore sets the mode of the terminal as it was at New. It is for the end of a
// program that cannot wait for Hold, since the terminal takes no output.
func (s *Screen) Restore() {
	if s.before != nil {
		_ = term.Restore(int(s.terminal.Fd()), s.before) // nothing else can be done about it
	}
}

// Hold calls show, which draws until its ctx ends or it has had enough, and calls
// it again each time the user comes back after Ctrl-Z: in the background nothing
// is drawn, which could be stopped for touching the terminal. suspend is what
// Ctrl-Z is to call. The error is that
// of show, or says why the screen was lost.
func (s *Screen) Hold(ctx context.Context, show func(ctx context.Context, suspend func()) error) error {
	for {
		if err := s.once(ctx, show); !errors.Is(err, errSuspended) {
			return err
		}
		stopGroup()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // Ctrl-Z came with the end, and is no failure
		}
		if back, err := s.background(ctx); err != nil || !back {
			return err
		}
	}
}

// once shows until Ctrl-Z, which is errSuspended, or the end.
func (s *Screen) once(ctx context.Context, show func(ctx context.Context, suspend func()) error) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	suspend := func() { leave(errSuspended) }
	var wg sync.WaitGroup
	wg.Go(func() {
		if s.watch(ctx) {
			leave(ErrGone) // what draws would draw on
		}
	})
	err := show(ctx, suspend)
	if err == nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		err = context.Cause(ctx)
	}
	leave(nil)
	wg.Wait()
	return err
}

// watch says whether the terminal went away before ctx ended.
func (s *Screen) watch(ctx context.Context) (gone bool) {
	ticker := time.NewTicker(goneEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if s.gone() {
				return true
			}
		}
	}
}

// background waits until this process may use the terminal again, which it may
// at once where the shell's fg has resumed it. back is false when ctx ended.
func (s *Screen) background(ctx context.Context) (back bool, err error) {
	if Foreground(s.terminal) {
		return true, nil
	}
	s.away(true)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for !Foreground(s.terminal) {
		select {
		case <-ctx.Done():
			return false, nil
		case <-ticker.C:
			if s.gone() {
				return false, ErrGone
			}
		}
	}
	s.away(false)
	return true, nil
}

func (s *Screen) away(away bool) {
	if s.Away != nil {
		s.Away(away)
	}
}

func (s *Screen) gone() bool {
	_, _, err := term.GetSize(int(s.terminal.Fd()))
	return err != nil
}
