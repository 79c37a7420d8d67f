package tui

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ptytest"
)

const (
	enter  = ansi.SetModeAltScreenSaveCursor
	leave  = ansi.ResetModeAltScreenSaveCursor
	cursor = ansi.SetModeTextCursorEnable
)

// shown waits for a view that is complete, its last line included.
func shown(p *pty) {
	p.T.Helper()
	p.Expect(enter)
	p.Expect("mini bench")
	p.Expect("Ctrl-C stops")
	if p.Odd() == "" {
		p.T.Error("the terminal is not in raw mode: keys would be shown")
	}
}

// restored waits for the normal screen, and looks at the terminal's line.
func restored(p *pty) {
	p.T.Helper()
	p.Expect(leave)
	p.Expect(cursor)
	ptytest.Eventually(p.T, "a sane terminal, without: "+p.Odd(), func() bool { return p.Odd() == "" })
}

func TestGivenBackAtTheEnd(t *testing.T) {
	p := onTerminal(t, "end")
	shown(p)
	p.Resize(60, 16)
	if err := p.cmd.Process.Signal(syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	p.Expect("Ctrl-C stops") // drawn anew for the new size
	p.Type("\x03")
	restored(p)
	p.Expect("given back\r\n")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, p.Output.String())
	}
}

func TestGivenBackAfterAPanic(t *testing.T) {
	p := onTerminal(t, "panic")
	shown(p)
	p.Type("\x03")
	said := p.Expect("a mistake in the view") + p.Expect("experienced a panic") + p.Expect("\n")
	if _, after, _ := strings.Cut(said, leave); strings.Contains(after, enter) {
		t.Errorf("the view came back: %q", said)
	}
	ptytest.Eventually(t, "a sane terminal", func() bool { return p.Odd() == "" })
}

// When the terminal goes away, the view ends and the process goes on.
func TestTerminalGone(t *testing.T) {
	result := filepath.Join(t.TempDir(), "result")
	p := onTerminal(t, "gone", "MINI_TUI_RESULT="+result)
	shown(p)
	_, _ = p.Line.Close(), p.Master.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if said, err := os.ReadFile(result); err != nil || !strings.HasPrefix(string(said), "live view: ") {
		t.Errorf("the view ended with %q, %v", said, err)
	}
}
