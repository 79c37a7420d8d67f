package tui

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty is a pseudo-terminal with a program on it, seen from the terminal's side.
type pty struct {
	t      testing.TB
	master *os.File
	line   *os.File // the program's side
	cmd    *exec.Cmd
	output bytes.Buffer
}

// deadline bounds everything that a test waits for.
const deadline = 20 * time.Second

// onTerminal starts this test program as a child on a terminal of 80x24.
func onTerminal(t testing.TB, part string, env ...string) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	p := &pty{t: t, master: master}
	var number uint32
	p.control(func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		number, err = unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		return err
	})
	p.line, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.line.Close() })
	p.resize(80, 24)

	p.cmd = exec.CommandContext(t.Context(), os.Args[0])
	p.cmd.Env = append(os.Environ(), append(env, childEnv+"="+part, "TERM=xterm-256color")...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = p.line, p.line, p.line
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	return p
}

func (p *pty) control(f func(fd int) error) {
	p.t.Helper()
	raw, err := p.master.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil || inner != nil {
		p.t.Fatal(err, inner)
	}
}

func (p *pty) resize(w, h int) {
	p.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(h), Col: uint16(w)})
	})
}

func (p *pty) write(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// expect reads until the output since the last expect has this, and returns
// what came before it.
func (p *pty) expect(want string) string {
	p.t.Helper()
	if err := p.master.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		p.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for {
		if before, after, ok := bytes.Cut(p.output.Bytes(), []byte(want)); ok {
			text := string(before)
			p.output = *bytes.NewBuffer(bytes.Clone(after))
			return text
		}
		n, err := p.master.Read(buf)
		if err != nil {
			p.t.Fatalf("no %q: %v; the output is %q", want, err, p.output.String())
		}
		p.output.Write(buf[:n])
	}
}

// sane says what of the terminal's line is not as it was before the view.
func (p *pty) sane() string {
	var line *unix.Termios
	p.control(func(fd int) (err error) {
		line, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	})
	var bad []string
	for name, on := range map[string]bool{
		"icanon": line.Lflag&unix.ICANON != 0, "echo": line.Lflag&unix.ECHO != 0,
		"isig": line.Lflag&unix.ISIG != 0, "opost": line.Oflag&unix.OPOST != 0,
	} {
		if !on {
			bad = append(bad, name)
		}
	}
	return strings.Join(bad, " ")
}

// eventually polls for what nobody tells.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	timeout := time.After(deadline)
	for !ok() {
		select {
		case <-poll.C:
		case <-timeout:
			t.Fatalf("never came: %s", what)
		}
	}
}

// drain takes what the program prints until it has ended.
func (p *pty) drain(ended <-chan error) error {
	buf := make([]byte, 64<<10)
	for {
		select {
		case err := <-ended:
			return err
		default:
		}
		if err := p.master.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			return err
		}
		n, _ := p.master.Read(buf)
		p.output.Reset()
		p.output.Write(buf[:n])
	}
}
