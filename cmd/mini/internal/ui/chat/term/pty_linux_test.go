package term

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

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
	return onTerminalOf(t, 80, program, env...)
}

// onTerminalOf is onTerminal for a terminal with the given number of columns.
func onTerminalOf(t testing.TB, columns int, program string, env ...string) *pty {
	t.Helper()
	p := &pty{Terminal: ptytest.Open(t, columns, 24), T: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.cmd.Env = append(os.Environ(), append(env, childEnv+"="+program, "TERM=xterm-256color")...)
	p.Start(p.cmd)
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	return p
}

// expectRestored waits until the program has restored the terminal and its mode.
func (p *pty) expectRestored() {
	p.T.Helper()
	p.Expect(ansi.ResetModeBracketedPaste)
	p.Expect(ansi.SetModeTextCursorEnable)
	ptytest.WaitFor(p.T, "a sane terminal", func() bool { return p.UnsetModes() == "" })
}

// read reads the available output.
func (p *pty) read() string {
	_ = p.Master.SetReadDeadline(time.Now().Add(time.Millisecond))
	buf := make([]byte, 64<<10)
	n, _ := p.Master.Read(buf)
	return string(buf[:n])
}
