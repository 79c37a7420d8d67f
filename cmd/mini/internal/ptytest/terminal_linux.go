package ptytest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Deadline bounds everything that is waited for, on a busy machine.
const Deadline = 40 * time.Second

// Terminal is a pseudo-terminal. It ends with its test.
type Terminal struct {
	t testing.TB
	// Master is the person's side, Line the program's.
	Master, Line *os.File
	// Output is what was read, and not taken by Expect.
	Output bytes.Buffer
}

// Open makes a terminal of this size; the test is skipped where there can be none.
func Open(t testing.TB, columns, rows int) *Terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	p := &Terminal{t: t, Master: master}
	var number uint32
	p.Control(func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		number, err = unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		return err
	})
	p.Line, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Line.Close() })
	p.Resize(columns, rows)
	mode := p.Mode()
	mode.Iflag |= unix.IUTF8 // as terminals do
	p.Control(func(fd int) error { return unix.IoctlSetTermios(fd, unix.TCSETS, mode) })
	return p
}

// Start runs a program as the leader of the terminal's session. It is killed when
// the test ends; waiting for it is the caller's. A hangup reaches it also where the
// test itself was started so that it has none, as by nohup.
func (p *Terminal) Start(cmd *exec.Cmd) {
	p.t.Helper()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // what is caught is inherited as the default
	defer signal.Stop(hangups)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Line, p.Line, p.Line
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = cmd.Process.Kill() })
}

// Control does something with the terminal's descriptor.
func (p *Terminal) Control(f func(fd int) error) {
	p.t.Helper()
	raw, err := p.Master.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil || inner != nil {
		p.t.Fatal(err, inner)
	}
}

// Resize gives the terminal another size.
func (p *Terminal) Resize(columns, rows int) {
	p.t.Helper()
	p.Control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	})
}

// Type writes keys.
func (p *Terminal) Type(keys string) {
	p.t.Helper()
	if _, err := p.Master.WriteString(keys); err != nil {
		p.t.Error(err)
	}
}

// Expect reads until the output since the last Expect has this, and returns what
// came before it.
func (p *Terminal) Expect(want string) string {
	p.t.Helper()
	if err := p.Master.SetReadDeadline(time.Now().Add(Deadline)); err != nil {
		p.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for {
		if before, after, ok := bytes.Cut(p.Output.Bytes(), []byte(want)); ok {
			text := string(before)
			p.Output = *bytes.NewBuffer(bytes.Clone(after))
			return text
		}
		n, err := p.Master.Read(buf)
		if err != nil {
			p.t.Fatalf("no %q: %v; the output is %q", want, err, p.Output.String())
		}
		p.Output.Write(buf[:n])
	}
}

// Mode is how the terminal's line is set.
func (p *Terminal) Mode() *unix.Termios {
	p.t.Helper()
	var mode *unix.Termios
	p.Control(func(fd int) (err error) {
		mode, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	})
	return mode
}

// Odd names what of the line is not as a shell needs it.
func (p *Terminal) Odd() string {
	p.t.Helper()
	mode := p.Mode()
	var odd []string
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"icanon", mode.Lflag&unix.ICANON != 0},
		{"echo", mode.Lflag&unix.ECHO != 0},
		{"isig", mode.Lflag&unix.ISIG != 0},
		{"opost", mode.Oflag&unix.OPOST != 0},
	} {
		if !f.on {
			odd = append(odd, f.name)
		}
	}
	return strings.Join(odd, " ")
}

// Eventually looks again and again for what nobody tells.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	timeout := time.After(Deadline)
	for !ok() {
		select {
		case <-poll.C:
		case <-timeout:
			t.Fatalf("never came: %s", what)
		}
	}
}
