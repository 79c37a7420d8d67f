//go:build linux || darwin

package screen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// goodbye tells the guard that the screen was given back.
const goodbye = "goodbye"

// giveBack undoes what is done to a terminal, whatever was half written when its
// process died. What was drawn on the normal screen stays, but for what is beneath
// the cursor.
func giveBack(inline bool) string {
	leave := ansi.ResetModeAltScreenSaveCursor
	if inline {
		leave = "\r\n" + ansi.EraseScreenBelow
	}
	return "\x1b\\" + ansi.ResetModeSynchronizedOutput + ansi.ResetModeBracketedPaste +
		ansi.ResetModifyOtherKeys + "\x1b[<1u" + // the kitty keyboard's stack
		ansi.ResetStyle + leave + ansi.SetModeTextCursorEnable + ansi.ResetModeUnicodeCore
}

// guard is a process that outlives this one by a moment, if need be.
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// startGuard starts this program again as the guard of a terminal. It is told
// the terminal's state through a pipe, what to say at an end that was none, and
// what this process has to say if it crashes. Without a guard the view works
// too, so failures are not told.
func startGuard(tty *os.File, inline bool, ended string) *guard {
	before, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios)
	if err != nil {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close() //nolint:errcheck // it is the guard's
	// The terminal's keys make signals for the foreground group; the guard is
	// in one of its own. It stays in this session, which is what tells it from
	// the commands of the local environment.
	cmd := &exec.Cmd{
		Path: self, Args: []string{os.Args[0], GuardCommand}, Env: []string{"GOMAXPROCS=1"}, Dir: "/",
		Stderr: tty, ExtraFiles: []*os.File{r}, SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	g := &guard{cmd: cmd, pipe: w}
	if cmd.Start() != nil {
		_ = w.Close()
		return nil
	}
	if tell(w, before, inline, ended) != nil || debug.SetCrashOutput(w, debug.CrashOptions{}) != nil {
		g.dismiss()
		return nil
	}
	return g
}

// tell writes what the guard reads first.
func tell(w io.Writer, before *unix.Termios, inline bool, ended string) error {
	ended = ended[:min(len(ended), maxEnded)]
	return errors.Join(
		binary.Write(w, binary.NativeEndian, before),
		binary.Write(w, binary.NativeEndian, inline),
		binary.Write(w, binary.NativeEndian, uint16(len(ended))),
		binary.Write(w, binary.NativeEndian, []byte(ended)),
	)
}

// heard reads what tell wrote.
func heard(r io.Reader) (before unix.Termios, inline bool, ended []byte, err error) {
	var n uint16
	for _, field := range []any{&before, &inline, &n} {
		if err = binary.Read(r, binary.NativeEndian, field); err != nil {
			return before, inline, nil, err
		}
	}
	ended = make([]byte, n)
	_, err = io.ReadFull(r, ended)
	return before, inline, ended, err
}

// maxEnded bounds the sentence that a guard says, in bytes: it must fit into a
// pipe with the rest.
const maxEnded = 1 << 10

// dismiss lets the guard go; the screen has been given back.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{}) // closes its copy of the pipe
	_, _ = io.WriteString(g.pipe, goodbye)
	_ = g.pipe.Close()
	late := time.AfterFunc(patience, func() { _ = g.cmd.Process.Kill() })
	defer late.Stop()
	_ = g.cmd.Wait() // what became of it does not matter any more
}

// maxCrash bounds what a crash can say, in bytes.
const maxCrash = 64 << 10

// Guard is the program of the guard: it waits for the end of the process that
// started it, and gives the terminal back where that could not do it itself,
// because it was killed or crashed.
func Guard() {
	signal.Ignore(unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE)
	pipe, tty := os.NewFile(3, "pipe"), os.Stderr
	before, inline, ended, err := heard(pipe)
	if err != nil {
		return
	}
	last, _ := io.ReadAll(io.LimitReader(pipe, maxCrash))
	if string(last) == goodbye {
		return
	}
	_, _ = io.Copy(io.Discard, pipe)
	_, _ = io.WriteString(tty, giveBack(inline))
	// A shell may have been quicker, and have the terminal as its own line
	// editor needs it. Only the view turns the processing of output off.
	if now, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios); err == nil && now.Oflag&unix.OPOST == 0 {
		_ = unix.IoctlSetTermios(int(tty.Fd()), setTermios, &before)
	}
	_, _ = tty.Write(bytes.ToValidUTF8(last, nil))
	// It is for the normal screen: where the shell was quicker than the guard,
	// its prompt went with the other one.
	_, _ = tty.Write(append(ended, '\n'))
}
