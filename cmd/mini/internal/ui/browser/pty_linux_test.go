package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/ptytest"
)

// pty is a terminal with this test program as its child.
type pty struct {
	*ptytest.Terminal
	T   *testing.T
	cmd *exec.Cmd
}

func onTerminal(t *testing.T, path string, env ...string) *pty {
	t.Helper()
	p := &pty{Terminal: ptytest.Open(t, 100, 24), T: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.cmd.Env = append(os.Environ(), append(env, childEnv+"="+path, "TERM=xterm-256color")...)
	p.Start(p.cmd)
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	return p
}

const (
	enter = ansi.SetModeAltScreenSaveCursor
	leave = ansi.ResetModeAltScreenSaveCursor
)

// The browser shows a step, opens it in a pager that fails, and restores the terminal at the end.
func TestOnTerminal(t *testing.T) {
	dir := run(t)
	seen := filepath.Join(t.TempDir(), "seen")
	pager := filepath.Join(t.TempDir(), "pager")
	write(t, pager, "#!/bin/sh\ncat > "+seen+"\nenv >> "+seen+"\nkill -INT 0\necho in the pager\nexit 4\n")
	if err := os.Chmod(pager, 0o755); err != nil {
		t.Fatal(err)
	}
	// The pager handles Ctrl-C itself.
	p := onTerminal(t, dir, "PAGER=trap '' INT; "+pager, "INSPECT_TEST_TOKEN=of-the-user")
	p.Expect(enter)
	p.Expect("unresolved")
	p.Type("\r")
	p.Expect("prompts")
	p.Type("l")
	p.Expect("I look.")
	p.Type("e")
	p.Expect(leave)
	p.Expect("in the pager")
	p.Expect(enter)
	p.Expect("exit status 4")
	text, err := os.ReadFile(seen)
	if err != nil || !strings.HasPrefix(string(text), "=== a-1") || !strings.Contains(string(text), "needle") {
		t.Errorf("the pager got %q, %v", text, err)
	}
	if !strings.Contains(string(text), "\nLESS=-R\n") || strings.Contains(string(text), "of-the-user") {
		t.Errorf("the pager has a wrong environment: %q", text)
	}
	p.Type("\x03")
	p.Expect(leave)
	p.Expect("given back: <nil> <nil>")
	if p.UnsetModes() != "" {
		t.Error("the terminal is still in raw mode")
	}
}

// An empty folder ends the browser at once.
func TestEmptyFolderOnTerminal(t *testing.T) {
	p := onTerminal(t, t.TempDir())
	p.Expect("given back: ")
	p.Expect("no trajectories found")
}
