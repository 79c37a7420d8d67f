package term

import (
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/ptytest"
)

// expectQuestion waits for the question and for raw mode.
func (p *pty) expectQuestion() {
	p.T.Helper()
	p.Expect("What now?")
	p.Expect("your turn")
	ptytest.WaitFor(p.T, "raw mode", func() bool { return p.UnsetModes() != "" })
}

func TestRestoredAtEnd(t *testing.T) {
	p := onTerminal(t, "ask")
	p.expectQuestion()
	p.Type("one\r")
	p.Expect(`answer "one"`)
	p.expectQuestion()
	p.Type("\x1b[200~pasted\rlines\x1b[201~\r")
	p.Expect(`answer "pasted\nlines"`)
	p.expectQuestion()
	p.Type("\x03")
	p.Expect("interrupted at a question")
	p.expectQuestion()
	p.Resize(60, 16)
	if err := p.cmd.Process.Signal(syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	p.Expect(strings.Repeat("─", 59) + ansi.ResetStyle + "\r\n") // redrawn for the new size
	p.Type("\x04")
	p.expectRestored()
	p.Expect("given back\r\n")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, p.Output.String())
	}
}
