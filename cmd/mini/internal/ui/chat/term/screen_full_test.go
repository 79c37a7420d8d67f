//go:build full && linux

package term

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"

	"github.com/minibench/mini/internal/ptytest"
)

// No line is wider than the terminal, even before Bubble Tea reports the size.
func TestNarrowAtStart(t *testing.T) {
	p := onTerminalOf(t, 30, "ask")
	// The first painted page.
	m := newModel(Config{}, newScreen(discard{}, true, nil))
	m.screen.painted = 1
	m.updateSize(p.TTY)
	if m.screen.next.width != 30 || m.columns() != 29 {
		t.Errorf("the first page has %d columns", m.screen.next.width)
	}
	if text := p.Expect("What now?"); !strings.Contains(text, strings.Repeat("─", 29)) || strings.Contains(text, strings.Repeat("─", 30)) {
		t.Errorf("the horizontal line is not as wide as the terminal: %q", text)
	}
	p.Expect("your turn")
	ptytest.WaitFor(p.T, "raw mode", func() bool { return p.UnsetModes() != "" })
	p.Type("\x04")
	p.expectRestored()
}

// Close shows the last output even if it is called at once.
func TestLastOutputIsShown(t *testing.T) {
	screen := newEmulator(t, 80, 24)
	p := onTerminal(t, "last")
	text := p.Expect("given back")
	_, _ = screen.Write([]byte(text))
	if got, want := screen.String(), "|the first word\n|the last but one\n|the last\n|█\n"; got != want {
		t.Errorf("the screen is\n%s, want\n%s", got, want)
	}
}

// NO_COLOR removes colours but not bold and faint.
func TestColours(t *testing.T) {
	for name, tt := range map[string]struct{ environ, red, green string }{
		"colours":  {"A=b", "\x1b[1;31mred\x1b[m", "\x1b[32m+green\x1b[m"},
		"NO_COLOR": {"NO_COLOR=1", "\x1b[1mred\x1b[m", "+green"},
	} {
		t.Run(name, func(t *testing.T) {
			p := onTerminal(t, "colours", tt.environ)
			text := p.Expect("given back")
			if !strings.Contains(text, tt.red) || !strings.Contains(text, tt.green) {
				t.Errorf("the output is %q", text)
			}
			if strings.Contains(text, "\x1b[32m") != strings.Contains(tt.green, "32") {
				t.Errorf("the output is %q", text)
			}
		})
	}
}

// The pager shows the full text, and the screen returns after it. A pager that is open at the
// end is terminated.
func TestPager(t *testing.T) {
	p := onTerminal(t, "pager", "PAGER=sh -c 'cat; env; echo the pager'", "SCREEN_TEST_TOKEN=of-the-user")
	p.Expect("… 500 more lines: Ctrl-O shows the full diff")
	p.expectQuestion()
	p.Type("\x0f")
	if text := p.Expect("the pager\r\n"); strings.Count(text, "+ a line\r\n") != 1000 {
		t.Errorf("the pager has %d lines", strings.Count(text, "+ a line\r\n"))
	} else if strings.Contains(text, "of-the-user") {
		t.Errorf("the pager has a secret: %q", text)
	}
	p.expectQuestion()
	p.Type("go on\r")
	p.Expect("Once more?")
	p.Expect("your turn")
	p.Type("\r")
	p.expectRestored()
	p.Expect("given back")

	p = onTerminal(t, "pager", "PAGER=sh -c 'cat; echo the pager; exec sleep 1000'")
	p.expectQuestion()
	p.Type("go on\r")
	p.Expect("Once more?")
	p.Type("\x0f")
	p.Expect("the pager\r\n")
	p.Expect("given back")
}

// A panic in the model ends the frontend with an error, not the process.
func TestRestoredAfterPanic(t *testing.T) {
	p := onTerminal(t, "panic")
	p.Expect("fine so far")
	p.Type("x\r")
	p.expectRestored()
	p.Expect("given back")
	p.Expect("child: screen: panic: no commands")
}

// A hangup is reported, and the process ends gracefully.
func TestHangup(t *testing.T) {
	for name, hangup := range map[string]func(p *pty){
		"signal":   func(p *pty) { _ = p.cmd.Process.Signal(syscall.SIGHUP) },
		"terminal": func(p *pty) { _, _ = p.TTY.Close(), p.Master.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			result := filepath.Join(t.TempDir(), "result")
			p := onTerminal(t, "busy", "MINI_SCREEN_RESULT="+result)
			p.Expect("y y y")
			hangup(p)
			ptytest.WaitFor(t, "the hangup", func() bool {
				if name == "signal" {
					_ = p.read()
				}
				text, _ := os.ReadFile(result)
				return string(text) == "hung up"
			})
			_ = p.cmd.Wait()
		})
	}
}

// Ctrl-Z returns to the shell, and fg restores the screen.
func TestSuspend(t *testing.T) {
	p := onTerminal(t, "ask")
	p.expectQuestion()
	p.Type("dra")
	p.Expect("dra")
	p.Type("\x1a")
	p.Expect(ansi.ResetModeBracketedPaste) // the terminal is restored only for a moment
	p.Expect(ansi.SetModeTextCursorEnable)
	// The kernel does not stop an orphaned process group, so the program continues by itself.
	p.expectQuestion()
	p.Type("ft\r")
	p.Expect(`answer "draft"`)
	p.expectQuestion()
	p.Type("\x04")
	p.expectRestored()
}

// The process can exit although the terminal blocks writes.
func TestExitOnBlockedTerminal(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	p := onTerminal(t, "busy", "MINI_SCREEN_CLOSED="+closed)
	p.Expect("y y y")
	if err := unix.IoctlSetInt(int(p.TTY.Fd()), unix.TCXONC, unix.TCOOFF); err != nil { // as with Ctrl-S
		t.Fatal(err)
	}
	p.Type("still heard\r/q\r")
	ptytest.WaitFor(t, "the end", func() bool {
		text, _ := os.ReadFile(closed)
		return string(text) == "screen: terminal blocks output"
	})
	if err := unix.IoctlSetInt(int(p.TTY.Fd()), unix.TCXONC, unix.TCOON); err != nil {
		t.Fatal(err)
	}
	p.Expect("child: screen: terminal blocks output")
	ptytest.WaitFor(t, "a sane terminal", func() bool { return p.UnsetModes() == "" })
}
