package terminal

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/minibench/mini/env/local"
)

// PagerCommand returns a command that shows a text, which must be sanitized, in the user's pager:
// $PAGER, else less, else more. Secrets are removed from the pager's environment. The pager is
// terminated when ctx ends.
func PagerCommand(ctx context.Context, text io.Reader) *exec.Cmd {
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
