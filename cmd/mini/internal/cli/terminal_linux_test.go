package cli_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/ptytest"
)

// ptyProcess is a program on a pseudo-terminal.
type ptyProcess struct {
	*ptytest.Terminal
	t     testing.TB
	cmd   *exec.Cmd
	ready string // text on the terminal when the user can answer a question; "" means "\n> "
	ended chan error
	all   bytes.Buffer
}

// newPTYProcess opens a terminal of 80x24.
func newPTYProcess(t testing.TB) *ptyProcess {
	t.Helper()
	return &ptyProcess{Terminal: ptytest.Open(t, 80, 24), t: t}
}

// start runs a program as the leader of the terminal's session.
func (p *ptyProcess) start(dir string, env []string, name string, args ...string) {
	p.t.Helper()
	p.cmd = exec.CommandContext(p.t.Context(), name, args...)
	p.cmd.Dir, p.cmd.Env = dir, env
	p.Start(p.cmd)
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.cmd.Wait() }()
}

// deadline is the maximum time that a test waits for output or an exit.
const deadline = time.Minute

// read reads the output of at most 50 ms.
func (p *ptyProcess) read() {
	buf := make([]byte, 64<<10)
	_ = p.Master.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	n, _ := p.Master.Read(buf)
	p.Output.Write(buf[:n])
	p.all.Write(buf[:n])
}

// expect reads until the output since the last call contains want.
func (p *ptyProcess) expect(want string) {
	p.t.Helper()
	for end := time.Now().Add(deadline); ; p.read() {
		text := plainText(p.Output.String())
		if _, after, ok := strings.Cut(text, want); ok {
			p.Output.Reset()
			p.Output.WriteString(after)
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("no %q on the terminal:\n%s", want, plainText(p.all.String()))
		}
	}
}

// exit reads until the program has ended, and returns its exit code. It returns -1 if a
// signal killed the program.
func (p *ptyProcess) exit() int {
	p.t.Helper()
	for end := time.Now().Add(deadline); ; p.read() {
		select {
		case err := <-p.ended:
			p.read()
			if e, ok := errors.AsType[*exec.ExitError](err); ok {
				return e.ExitCode()
			} else if err != nil {
				p.t.Fatal(err)
			}
			return 0
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("it does not end:\n%s", plainText(p.all.String()))
		}
	}
}

// plainText returns output without escape sequences and carriage returns.
func plainText(s string) string { return strings.ReplaceAll(ansi.Strip(s), "\r", "") }
