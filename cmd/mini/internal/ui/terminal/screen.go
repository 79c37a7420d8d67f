// Package terminal takes over a terminal for a full-screen program and restores it on every
// exit: at the end, on Ctrl-Z, and when the terminal is lost. After SIGKILL, run reset or stty
// sane.
//
//	s := terminal.New(os.Stderr)
//	err := s.Run(ctx, func(ctx context.Context, suspend func()) error { ... })
package terminal

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Errors that end a screen early.
var (
	// ErrTerminalLost means that the terminal no longer exists.
	ErrTerminalLost = errors.New("terminal lost")
	errSuspended    = errors.New("suspended")
)

// Polling intervals: for a lost terminal, and for permission to use it from the background.
const (
	goneInterval       = time.Second
	foregroundInterval = 250 * time.Millisecond
)

// Screen is a terminal used by a full-screen program.
type Screen struct {
	// OnBackground is called with true when the process has moved to the background, and with
	// false when it returns. It may be nil.
	OnBackground func(away bool)

	terminal   *os.File
	savedState *term.State // nil if it is not a terminal
}

// New returns a Screen for a terminal.
func New(terminal *os.File) *Screen {
	before, _ := term.GetState(int(terminal.Fd())) // nil if it is not a terminal
	return &Screen{terminal: terminal, savedState: before}
}

// RestoreMode resets the terminal mode to that at New. It is for exits that cannot wait for
// Run because the terminal blocks writes.
func (s *Screen) RestoreMode() {
	if s.savedState != nil {
		_ = term.Restore(int(s.terminal.Fd()), s.savedState) // best effort
	}
}

// Run calls show, which draws until its ctx ends or it returns. After Ctrl-Z it calls show
// again when the process returns to the foreground: a background process that uses the
// terminal would be stopped. show calls suspend on Ctrl-Z. Run returns the error of show, or
// why the terminal was lost.
func (s *Screen) Run(ctx context.Context, show func(ctx context.Context, suspend func()) error) error {
	for {
		if err := s.runOnce(ctx, show); !errors.Is(err, errSuspended) {
			return err
		}
		suspendGroup()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // suspending during the end is not a failure
		}
		if ok, err := s.waitForeground(ctx); err != nil || !ok {
			return err
		}
	}
}

// runOnce calls show. It returns errSuspended after Ctrl-Z.
func (s *Screen) runOnce(ctx context.Context, show func(ctx context.Context, suspend func()) error) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	suspend := func() { leave(errSuspended) }
	var wg sync.WaitGroup
	wg.Go(func() {
		if s.waitGone(ctx) {
			leave(ErrTerminalLost) // show does not notice it
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

// waitGone waits for the loss of the terminal; false if ctx ended first.
func (s *Screen) waitGone(ctx context.Context) (gone bool) {
	ticker := time.NewTicker(goneInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if s.isGone() {
				return true
			}
		}
	}
}

// waitForeground waits until this process may use the terminal. It returns at once after the
// shell's fg. ok is false if ctx ended.
func (s *Screen) waitForeground(ctx context.Context) (ok bool, err error) {
	if IsForeground(s.terminal) {
		return true, nil
	}
	s.notifyBackground(true)
	ticker := time.NewTicker(foregroundInterval)
	defer ticker.Stop()
	for !IsForeground(s.terminal) {
		select {
		case <-ctx.Done():
			return false, nil
		case <-ticker.C:
			if s.isGone() {
				return false, ErrTerminalLost
			}
		}
	}
	s.notifyBackground(false)
	return true, nil
}

func (s *Screen) notifyBackground(away bool) {
	if s.OnBackground != nil {
		s.OnBackground(away)
	}
}

func (s *Screen) isGone() bool {
	_, _, err := term.GetSize(int(s.terminal.Fd()))
	return err != nil
}
