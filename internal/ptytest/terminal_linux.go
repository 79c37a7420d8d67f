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

// Deadline is the timeout of each wait, long enough for a busy machine.
const Deadline = 3 * time.Minute

// Terminal is a pseudo-terminal. It is closed at the end of its test.
type Terminal struct {
	t testing.TB
	// Master is the user's end, TTY the program's.
	Master, TTY *os.File
	// Output is the output that was read and that Expect has not yet consumed.
	Output bytes.Buffer
}

// Open opens a terminal of a size. It skips the test if the system has no pseudo-terminals.
func Open(t testing.TB, columns, rows int) *Terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
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
	p.TTY, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.TTY.Close() })
	p.Resize(columns, rows)
	mode := p.Mode()
	mode.Iflag |= unix.IUTF8 // as terminals set it
	p.Control(func(fd int) error { return unix.IoctlSetTermios(fd, unix.TCSETS, mode) })
	return p
}

// Start starts a program as session leader of the terminal. The caller waits for the
// program; the end of the test kills it. The program receives SIGHUP even if the test runs
// under nohup.
func (p *Terminal) Start(cmd *exec.Cmd) {
	p.t.Helper()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // a child inherits an ignored signal, but not a handled one
	defer signal.Stop(hangups)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = cmd.Process.Kill() })
}

// Control calls f with the terminal's file descriptor.
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

// Resize sets the size of the terminal.
func (p *Terminal) Resize(columns, rows int) {
	p.t.Helper()
	p.Control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	})
}

// Type types keys.
func (p *Terminal) Type(keys string) {
	p.t.Helper()
	if _, err := p.Master.WriteString(keys); err != nil {
		p.t.Error(err)
	}
}

// Expect reads until the output since the last Expect contains want, and returns the output
// before want. After Deadline, the test fails.
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

// Mode returns the terminal's settings.
func (p *Terminal) Mode() *unix.Termios {
	p.t.Helper()
	var mode *unix.Termios
	p.Control(func(fd int) (err error) {
		mode, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	})
	return mode
}

// UnsetModes returns the names of the settings that a shell needs and that are off.
func (p *Terminal) UnsetModes() string {
	p.t.Helper()
	mode := p.Mode()
	var unset []string
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
			unset = append(unset, f.name)
		}
	}
	return strings.Join(unset, " ")
}

// WaitFor waits until ok returns true. After Deadline, the test fails with a message that
// contains what.
func WaitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	timeout := time.After(Deadline)
	for !ok() {
		select {
		case <-poll.C:
		case <-timeout:
			t.Fatalf("timed out waiting for: %s", what)
		}
	}
}
