package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/env/local"
)

var openPagers atomic.Int32

// IsPagerOpen reports whether a pager of ExecPager is on the terminal. Ctrl-C is then for the pager, and
// this process gets it, too.
func IsPagerOpen() bool { return openPagers.Load() > 0 }

// ExecPager returns a command of Bubble Tea that shows a text, which must be sanitized, in the user's
// pager: $PAGER, else less, else more. Secrets are removed from the pager's environment. The pager is
// terminated when ctx ends. done gets the error of the pager; Ctrl-C is not an error.
func ExecPager(ctx context.Context, text io.Reader, out io.Writer, done func(error) tea.Msg) tea.Cmd {
	cmd := pagerCommand(ctx, text)
	cmd.Stdout, cmd.Stderr = out, out
	openPagers.Add(1)
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		openPagers.Add(-1)
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			if status, ok := e.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGINT {
				err = nil
			}
		}
		return done(err)
	})
}

func pagerCommand(ctx context.Context, text io.Reader) *exec.Cmd {
	pager := strings.TrimSpace(os.Getenv("PAGER"))
	if pager == "" {
		pager = "more"
		if _, err := exec.LookPath("less"); err == nil {
			pager = "less -R"
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", pager)                       //nolint:gosec // the user's own setting
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // lets the pager restore the terminal
	cmd.WaitDelay = time.Second
	cmd.Stdin = text
	cmd.Env = local.WithoutSecrets(os.Environ(), nil)
	if os.Getenv("LESS") == "" { // without -R less shows escape sequences as text
		cmd.Env = append(cmd.Env, "LESS=-R")
	}
	return cmd
}
