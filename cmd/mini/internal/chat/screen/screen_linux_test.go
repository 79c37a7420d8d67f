package screen

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"

	"github.com/minibench/mini/cmd/mini/internal/ptytest"
)

// asked waits for a question, and for a terminal in raw mode.
func (p *pty) asked() {
	p.T.Helper()
	p.Expect("What now?")
	p.Expect("your turn")
	ptytest.Eventually(p.T, "raw mode", func() bool { return p.Odd() != "" })
}

func TestGivenBackAtTheEnd(t *testing.T) {
	p := onTerminal(t, "ask")
	p.asked()
	p.Type("one\r")
	p.Expect(`answer "one"`)
	p.asked()
	p.Type("\x1b[200~pasted\rlines\x1b[201~\r")
	p.Expect(`answer "pasted\nlines"`)
	p.asked()
	p.Type("\x03")
	p.Expect("interrupted at a question")
	p.asked()
	p.Resize(60, 16)
	if err := p.cmd.Process.Signal(syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	p.Expect(strings.Repeat("─", 59) + ansi.ResetStyle + "\r\n") // drawn anew for the new size
	p.Type("\x04")
	p.restored()
	p.Expect("given back\r\n")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, p.Output.String())
	}
}

// Nothing is ever wider than the terminal, also before the program has heard of
// its size.
func TestNarrowFromTheStart(t *testing.T) {
	p := onTerminalOf(t, 30, "ask")
	// The page that is painted first, whichever that is.
	m := newModel(nil, nil)
	m.canvas.paintedUpTo(1)
	m.fit(p.Line)
	if page, _ := m.canvas.take(); page.width != 30 || m.columns() != 29 {
		t.Errorf("the first page has %d columns", page.width)
	}
	if text := p.Expect("What now?"); !strings.Contains(text, strings.Repeat("─", 29)) || strings.Contains(text, strings.Repeat("─", 30)) {
		t.Errorf("a line across is not as wide as the terminal: %q", text)
	}
	p.Expect("your turn")
	ptytest.Eventually(p.T, "raw mode", func() bool { return p.Odd() != "" })
	p.Type("\x04")
	p.restored()
}

// What was shown last stays, however soon the end comes.
func TestLast(t *testing.T) {
	v := newTerminal(t, 80, 24)
	p := onTerminal(t, "last")
	text := p.Expect("given back")
	_, _ = v.Write([]byte(text))
	if got, want := v.String(), "|the first word\n|\n|the last but one\n|the last\n|█\n"; got != want {
		t.Errorf("what stays is\n%s, want\n%s", got, want)
	}
}

// NO_COLOR leaves colours out, and the weight of letters in.
func TestColours(t *testing.T) {
	for name, tt := range map[string]struct{ environ, red, green string }{
		"colours":  {"A=b", "\x1b[1;31mred\x1b[m", "\x1b[32m+green\x1b[m"},
		"NO_COLOR": {"NO_COLOR=1", "\x1b[1mred\x1b[m", "+green"},
	} {
		t.Run(name, func(t *testing.T) {
			p := onTerminal(t, "colours", tt.environ)
			text := p.Expect("given back")
			if !strings.Contains(text, tt.red) || !strings.Contains(text, tt.green) {
				t.Errorf("it is %q", text)
			}
			if strings.Contains(text, "\x1b[32m") != strings.Contains(tt.green, "32") {
				t.Errorf("it is %q", text)
			}
		})
	}
}

// What was left out is opened whole, and the screen comes back after it; a pager
// that is open at the end is ended.
func TestPager(t *testing.T) {
	p := onTerminal(t, "pager", "PAGER=sh -c 'cat; env; echo the pager'", "SCREEN_TEST_TOKEN=of-the-user")
	p.Expect("… 500 lines more: Ctrl-O shows the whole diff")
	p.asked()
	p.Type("\x0f")
	if text := p.Expect("the pager\r\n"); strings.Count(text, "+ a line\r\n") != 1000 {
		t.Errorf("the pager has %d lines", strings.Count(text, "+ a line\r\n"))
	} else if strings.Contains(text, "of-the-user") {
		t.Errorf("the pager has a secret: %q", text)
	}
	p.asked()
	p.Type("go on\r")
	p.Expect("Once more?")
	p.restored()
	p.Expect("given back")

	p = onTerminal(t, "pager", "PAGER=sh -c 'cat; echo the pager; exec sleep 1000'")
	p.asked()
	p.Type("go on\r")
	p.Expect("Once more?")
	p.Type("\x0f")
	p.Expect("the pager\r\n")
	p.Expect("given back")
}

// A mistake in the screen ends the screen, is told, and is no end of the process.
func TestGivenBackAfterAPanic(t *testing.T) {
	p := onTerminal(t, "panic")
	p.Expect("fine so far")
	p.Type("x\r")
	p.restored()
	p.Expect("given back")
	p.Expect("child: screen: a mistake in the screen: no commands")
}

// While the agent works the input is there, and output comes above it.
func TestWhileBusy(t *testing.T) {
	p := onTerminal(t, "busy")
	p.Expect("y y y")
	p.Type("use tabs\r")
	p.Expect("acts: use tabs")
	p.Type("\x03")
	p.Expect("acts: ^C")
	p.Type("/q\r")
	p.restored()
	p.Expect("given back")
}

// A hangup is passed on, and the process ends in its own time.
func TestHangup(t *testing.T) {
	for name, hangup := range map[string]func(p *pty){
		"signal":   func(p *pty) { _ = p.cmd.Process.Signal(syscall.SIGHUP) },
		"terminal": func(p *pty) { _, _ = p.Line.Close(), p.Master.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			result := filepath.Join(t.TempDir(), "result")
			p := onTerminal(t, "busy", "MINI_SCREEN_RESULT="+result)
			p.Expect("y y y")
			hangup(p)
			ptytest.Eventually(t, "the hangup", func() bool {
				if name == "signal" {
					_ = p.read()
				}
				said, _ := os.ReadFile(result)
				return string(said) == "hung up"
			})
			_ = p.cmd.Wait()
		})
	}
}

// Ctrl-Z leaves the terminal to the shell, and fg takes it again with all that was
// written.
func TestSuspend(t *testing.T) {
	p := onTerminal(t, "ask")
	p.asked()
	p.Type("dra")
	p.Expect("dra")
	p.Type("\x1a")
	p.restored()
	// The kernel does not stop a program that no shell could resume, so it comes
	// back by itself.
	p.asked()
	p.Type("ft\r")
	p.Expect(`answer "draft"`)
	p.asked()
	p.Type("\x04")
	p.restored()
}

// A terminal that takes nothing does not keep the process from its end.
func TestTakesNothing(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	p := onTerminal(t, "busy", "MINI_SCREEN_CLOSED="+closed)
	p.Expect("y y y")
	if err := unix.IoctlSetInt(int(p.Line.Fd()), unix.TCXONC, unix.TCOOFF); err != nil { // as Ctrl-S does
		t.Fatal(err)
	}
	p.Type("still heard\r/q\r")
	ptytest.Eventually(t, "the end", func() bool {
		said, _ := os.ReadFile(closed)
		return string(said) == "screen: the terminal takes no output"
	})
	if err := unix.IoctlSetInt(int(p.Line.Fd()), unix.TCXONC, unix.TCOON); err != nil {
		t.Fatal(err)
	}
	p.Expect("child: screen: the terminal takes no output")
	ptytest.Eventually(t, "a sane terminal", func() bool { return p.Odd() == "" })
}
