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
	// ErrTerminalLost means that the terminal no longer exists, for example because its window
	// was closed.
	ErrTerminalLost = errors.New("terminal lost")
	errSuspended    = errors.New("suspended")
)

// Polling intervals.
const (
	lostInterval       = time.Second            // checks whether the terminal is lost
	foregroundInterval = 250 * time.Millisecond // checks whether the process is in the foreground again
)

// Screen is a terminal used by a full-screen program.
type Screen struct {
	// OnBackground is called with true when the process has moved to the background, and with
	// false when it returns. It may be nil.
	OnBackground func(inBackground bool)

	terminal   *os.File
	savedState *term.State // at New; nil if the file is not a terminal
}

// New returns a Screen for a terminal.
func New(terminal *os.File) *Screen {
	state, _ := term.GetState(int(terminal.Fd())) // nil if it is not a terminal
	return &Screen{terminal: terminal, savedState: state}
}

// RestoreMode restores the terminal mode that New saved. Call it at exit if Run does not return
// because writes to the terminal block.
func (s *Screen) RestoreMode() {
	if s.savedState != nil {
		_ = term.Restore(int(s.terminal.Fd()), s.savedState) // best effort
	}
}

// Run calls show, which draws on the terminal until its ctx ends. On Ctrl-Z, show calls suspend,
// which ends the ctx of show. Run then stops the process group, and calls show again when the
// process is back in the foreground: the kernel stops background processes that use the terminal.
// Run returns the error of show, ErrTerminalLost, or the cause of ctx unless that is
// context.Canceled.
func (s *Screen) Run(ctx context.Context, show func(ctx context.Context, suspend func()) error) error {
	for {
		if err := s.runOnce(ctx, show); !errors.Is(err, errSuspended) {
			return err
		}
		suspendGroup()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // ctx ended during the suspension: not a failure
		}
		if ok, err := s.waitForeground(ctx); err != nil || !ok {
			return err
		}
	}
}

// runOnce calls show once. It returns errSuspended if show called suspend.
func (s *Screen) runOnce(ctx context.Context, show func(ctx context.Context, suspend func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	suspend := func() { cancel(errSuspended) }
	var wg sync.WaitGroup
	wg.Go(func() {
		if s.waitLost(ctx) {
			cancel(ErrTerminalLost) // show itself may not notice the loss
		}
	})
	err := show(ctx, suspend)
	if err == nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		err = context.Cause(ctx)
	}
	cancel(nil)
	wg.Wait()
	return err
}

// waitLost waits until the terminal is lost. It returns false if ctx ended first.
func (s *Screen) waitLost(ctx context.Context) (lost bool) {
	ticker := time.NewTicker(lostInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if s.isLost() {
				return true
			}
		}
	}
}

// waitForeground waits until this process is in the foreground, where the shell's fg puts it.
// ok is false if ctx ended first.
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
			if s.isLost() {
				return false, ErrTerminalLost
			}
		}
	}
	s.notifyBackground(false)
	return true, nil
}

func (s *Screen) notifyBackground(inBackground bool) {
	if s.OnBackground != nil {
		s.OnBackground(inBackground)
	}
}

func (s *Screen) isLost() bool {
	_, _, err := term.GetSize(int(s.terminal.Fd()))
	return err != nil
}
