// Package cli is mini's command line: one file per command, wire.go for the
// names that become implementations, and here the one place where errors
// become messages and exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
)

// Exit codes of mini; README.md explains them to users.
const (
	exitOK          = 0
	exitFailed      = 1   // anything else
	exitUsage       = 2   // something to mend first; nothing was run
	exitIncomplete  = 3   // finished, but some instance has no result
	exitInterrupted = 130 // stopped by a signal
)

// Streams is where a command reads and writes. Out carries results, Err
// progress and messages.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal says that In and Err are one, so that questions can be asked.
	Terminal bool
	// OutTerminal says that Out is one, and must not be sent what could
	// steer it.
	OutTerminal bool

	interrupts *interrupts
}

// System is the streams of the process.
func System() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Terminal:    term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
	}
}

// gcPercent lets garbage be less of the memory than Go's default does: mini
// shares its machine with the containers it waits for, and has time.
const gcPercent = 30

// killGrace is how long a command may take to unwind after it was killed.
const killGrace = 5 * time.Second

// Main runs mini with these arguments and returns its exit code.
func Main(args []string, s Streams) int {
	if err := closeMemory(); err != nil {
		return exit(s.Err, err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, kill := context.WithCancelCause(context.Background())
	defer kill(nil)
	s.Err = &messages{w: s.Err}
	s.interrupts = &interrupts{}
	soft, stop := interruptible(ctx, kill, s.Err, s.interrupts)
	defer stop()

	done := make(chan int, 1)
	go func() {
		root := newRoot(ctx, s)
		root.SetArgs(args)
		done <- exit(s.Err, root.ExecuteContext(soft))
	}()
	select {
	case code := <-done:
		return code
	case <-ctx.Done():
	}
	select {
	case <-done:
	case <-time.After(killGrace):
	}
	return exitInterrupted
}

// errIncomplete ends a batch some of whose instances have no result.
var errIncomplete = errors.New("some instances have no result")

// errSaid ends a command that has nothing to say beside its exit code.
var errSaid = errors.New("said already")

// codedError is an error with an exit code of its own.
type codedError struct {
	err  error
	code int
}

func (c *codedError) Error() string { return c.err.Error() }
func (c *codedError) Unwrap() error { return c.err }

// usagef is something to be mended before anything is run: on the command line,
// in a file, on this machine.
func usagef(format string, args ...any) error {
	return &codedError{fmt.Errorf(format, args...), exitUsage}
}

// before marks an error of what comes before a run: whatever it is, nothing
// was run. An interrupt stays one.
func before(err error) error {
	if err == nil || errors.Is(err, agent.ErrInterrupted) {
		return err
	}
	return &codedError{err, exitUsage}
}

// exit says what went wrong, and what to do, and picks the exit code.
func exit(w io.Writer, err error) int {
	code := exitCode(err)
	if err == nil || errors.Is(err, errSaid) || err.Error() == errIncomplete.Error() || err.Error() == errEnded.Error() {
		return code // the summary has said it
	}
	if unread(err) {
		return code
	}
	text := "mini: " + lines(message(err))
	if hint := hintOf(err); hint != "" {
		text += "\n      " + lines(hint)
	}
	_, _ = fmt.Fprintln(w, text) // nobody is left to tell
	return code
}

// unread says that who read mini's output has had enough, as head does. That is
// no news to anybody.
func unread(err error) bool {
	broken, ok := errors.AsType[*fs.PathError](err)
	return ok && broken.Path == os.Stdout.Name() && errors.Is(broken, syscall.EPIPE)
}

// message is what an error says. A full disk fails one file after the other;
// it is said once.
func message(err error) string {
	full, ok := errors.AsType[*fs.PathError](err)
	if _, said := errors.AsType[*hub.Error](err); ok && !said && diskFull(err) {
		return "the disk is full: no room to write in " + filepath.Dir(full.Path)
	}
	return err.Error()
}

func exitCode(err error) int {
	coded, own := errors.AsType[*codedError](err)
	switch {
	case err == nil:
		return exitOK
	case own:
		return coded.code
	case errors.Is(err, agent.ErrInterrupted):
		return exitInterrupted
	case errors.Is(err, errIncomplete):
		return exitIncomplete
	case errors.Is(err, configs.ErrConfig), errors.Is(err, datasets.ErrData), errors.Is(err, runner.ErrNotRun), diskFull(err):
		return exitUsage
	}
	return exitFailed
}

// diskFull says that a run stopped for want of room. What was written before
// is good, and the run can go on.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// outOfRoom marks a batch that met a full disk: unless it was complete by then,
// some of its instances have no result, and the next start goes on.
func outOfRoom(err error, complete bool) error {
	_, coded := errors.AsType[*codedError](err)
	switch {
	case coded || !diskFull(err):
		return err
	case complete:
		return &codedError{err, exitFailed}
	}
	return &codedError{err, exitIncomplete}
}

func hintOf(err error) string {
	if e, ok := errors.AsType[*hub.Error](err); ok {
		return e.Hint
	}
	if e, ok := errors.AsType[*env.Error](err); ok {
		return e.Hint
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e.Hint
	}
	if _, ok := errors.AsType[*runner.LockedError](err); ok {
		return "nothing was started"
	}
	switch {
	case diskFull(err):
		return "make room, then run it again; a batch goes on with the same -o"
	case errors.Is(err, fs.ErrPermission):
		return "this user may not do that there; change the rights (ls -ld shows them), or name another place"
	case errors.Is(err, syscall.EROFS):
		return "that file system can only be read; name another place"
	case errors.Is(err, syscall.ENOTDIR):
		return "a file stands where a folder is needed; name another place"
	}
	return ""
}

// lines makes a message fit for a terminal, keeping its line ends.
func lines(s string) string {
	split := strings.Split(s, "\n")
	for i, l := range split {
		split[i] = report.Printable(l)
	}
	return strings.Join(split, "\n")
}
