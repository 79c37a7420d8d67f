package live

import (
	"os"
	"os/exec"
	"testing"

	"github.com/minibench/mini/internal/ptytest"
)

// pty is a terminal with this test program as its child.
type pty struct {
	*ptytest.Terminal
	T   testing.TB
	cmd *exec.Cmd
}

// onTerminal starts this test program as a child on a terminal of 80x24.
func onTerminal(t testing.TB, program string, env ...string) *pty {
	t.Helper()
	p := &pty{Terminal: ptytest.Open(t, 80, 24), T: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.cmd.Env = append(os.Environ(), append(env, childEnv+"="+program, "TERM=xterm-256color")...)
	p.Start(p.cmd)
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	return p
}
