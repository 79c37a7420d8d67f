// Package screen takes the screen of a terminal and gives it back on every way
// out: at the end, at Ctrl-Z and when the shell's fg brings it back, when the
// terminal goes away, and also when this process is killed (see Guard). What is
// shown there is the affair of those who take it.
//
//	s := screen.New(os.Stderr, "mini was killed")
//	err := s.Hold(ctx, func(ctx context.Context, suspend func()) error { ... })
//	s.Release()
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

// patience is how long a guard may take to end.
const patience = 3 * time.Second

// Screen is that of a terminal.
type Screen struct {
	// Away is called with true when the screen was left and this process is in
	// the background, and with false when it comes back from there. It may be nil.
	Away func(away bool)
	// Inline says that the normal screen is drawn on, and not the alternate one.
	Inline bool

	terminal *os.File
	ended    string
	guard    *guard
}

// New is for a terminal. ended is what the guard says there when this process was
// killed or has crashed.
func New(terminal *os.File, ended string) *Screen {
	return &Screen{terminal: terminal, ended: ended}
}

// Hold calls show, which draws until its ctx ends or it has had enough, and calls
// it again each time the user comes back after Ctrl-Z: in the background nothing
// is drawn, which could be stopped for touching the terminal. suspend is what
// Ctrl-Z is to call; nil where this process cannot be stopped. The error is that
// of show, or says why the screen was lost.
func (s *Screen) Hold(ctx context.Context, show func(ctx context.Context, suspend func()) error) error {
	for {
		s.guard = startGuard(s.terminal, s.Inline, s.ended)
		if err := s.once(ctx, show); !errors.Is(err, errSuspended) {
			return err
		}
		s.guard.dismiss()
		s.guard = nil
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
	var suspend func()
	if canStop {
		suspend = func() { leave(errSuspended) }
	}
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

// Release lets the guard go, once Hold has returned and the screen was given
// back. Without it the guard gives the screen back when this process ends.
func (s *Screen) Release() { s.guard.dismiss() }
