package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/ptytest"
)

const (
	enter = ansi.SetModeAltScreenSaveCursor
	leave = ansi.ResetModeAltScreenSaveCursor
)

// waitForView waits until the view is drawn completely.
func waitForView(p *pty) {
	p.T.Helper()
	p.Expect(enter)
	p.Expect("mini bench")
	p.Expect("Ctrl-C stops")
	if p.UnsetModes() == "" {
		p.T.Error("the terminal is not in raw mode: it would echo keys")
	}
}

func TestRestoredAfterPanic(t *testing.T) {
	p := onTerminal(t, "panic")
	waitForView(p)
	p.Type("\x03")
	// Bubble Tea prints the panic in another goroutine, before or after this.
	output := p.Expect("experienced a panic") + p.Expect("\n")
	if _, after, _ := strings.Cut(output, leave); strings.Contains(after, enter) {
		t.Errorf("the view was drawn again: %q", output)
	}
	ptytest.WaitFor(t, "a sane terminal", func() bool { return p.UnsetModes() == "" })
}

// If the terminal is lost, the view ends and the process continues.
func TestTerminalLost(t *testing.T) {
	result := filepath.Join(t.TempDir(), "result")
	p := onTerminal(t, "gone", "MINI_TUI_RESULT="+result)
	waitForView(p)
	_, _ = p.TTY.Close(), p.Master.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(result); err != nil || !strings.HasPrefix(string(text), "live view: ") {
		t.Errorf("the view ended with %q, %v", text, err)
	}
}
