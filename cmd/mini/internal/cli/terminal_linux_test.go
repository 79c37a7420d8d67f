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

// line is a terminal with a mini on it.
type line struct {
	*ptytest.Terminal
	t     testing.TB
	cmd   *exec.Cmd
	ready string // is there when a question can be answered; "" is the prompt for a line
	ended chan error
	all   bytes.Buffer
}

// newLine opens a terminal of 80x24.
func newLine(t testing.TB) *line {
	t.Helper()
	return &line{Terminal: ptytest.Open(t, 80, 24), t: t}
}

// start runs a program as the leader of the terminal's session.
func (p *line) start(dir string, env []string, name string, args ...string) {
	p.t.Helper()
	p.cmd = exec.CommandContext(p.t.Context(), name, args...)
	p.cmd.Dir, p.cmd.Env = dir, env
	p.Start(p.cmd)
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.cmd.Wait() }()
}

// deadline bounds everything that a test waits for, on a busy machine.
const deadline = time.Minute

// read takes what was printed within a moment.
func (p *line) read() {
	buf := make([]byte, 64<<10)
	_ = p.Master.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	n, _ := p.Master.Read(buf)
	p.Output.Write(buf[:n])
	p.all.Write(buf[:n])
}

// expect reads until the output since the last expect has this.
func (p *line) expect(want string) {
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

// exit reads until the program has ended, and returns its exit code; -1 is a
// signal.
func (p *line) exit() int {
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

// plainText is what is left of output without colours and the like.
func plainText(s string) string { return strings.ReplaceAll(ansi.Strip(s), "\r", "") }
