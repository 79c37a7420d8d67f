package cmdutil

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
)

// Exit codes of mini; README.md explains them to users.
const (
	ExitOK          = 0
	exitFailed      = 1   // any other failure
	ExitUsage       = 2   // error in flags, files or this machine; nothing was run
	ExitIncomplete  = 3   // some instances have no result, or some items failed
	ExitInterrupted = 130 // stopped by a signal
)

// ErrIncomplete ends a command with ExitIncomplete, for example a batch in which some instances
// have no result. By itself it is not printed.
var ErrIncomplete = errors.New("some instances have no result")

// ErrReported ends a command whose error has already been printed.
var ErrReported = errors.New("already reported")

// ExitError is an error with its own exit code.
type ExitError struct {
	Err  error
	Code int
}

// WithCode wraps err with an exit code.
func WithCode(err error, code int) error { return &ExitError{Err: err, Code: code} }

func (c *ExitError) Error() string { return c.Err.Error() }

func (c *ExitError) Unwrap() error { return c.Err }

// ReportError prints err with its hint to w and returns the exit code. It does not print errors
// that have been reported already, or EPIPE on stdout.
func ReportError(w io.Writer, err error) int {
	code := ExitCode(err)
	if err == nil || errors.Is(err, ErrReported) || err.Error() == ErrIncomplete.Error() || err.Error() == ErrSessionEnded.Error() {
		return code // nothing to print, or already printed
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok && pathErr.Path == os.Stdout.Name() && errors.Is(pathErr, syscall.EPIPE) {
		return code // the reader of stdout, such as head, has exited
	}
	text := "mini: " + Sanitize(errorText(err))
	if hint := Hint(err); hint != "" {
		text += "\n      " + Sanitize(hint)
	}
	_, _ = fmt.Fprintln(w, text)
	return code
}

// errorText returns the message of err. If a file could not be written because the disk is full,
// the message names only the folder; this does not apply to a hub.Error.
func errorText(err error) string {
	full, isPathError := errors.AsType[*fs.PathError](err)
	if _, isHubError := errors.AsType[*hub.Error](err); isPathError && !isHubError && isDiskFull(err) {
		return "the disk is full: no room to write in " + filepath.Dir(full.Path)
	}
	return err.Error()
}

// ExitCode returns the exit code for err.
func ExitCode(err error) int {
	exitErr, hasCode := errors.AsType[*ExitError](err)
	_, isUsage := errors.AsType[*usage.Error](err)
	switch {
	case err == nil:
		return ExitOK
	case hasCode:
		return exitErr.Code
	case errors.Is(err, agent.ErrInterrupted):
		return ExitInterrupted
	case isUsage:
		return ExitUsage
	case errors.Is(err, ErrIncomplete):
		return ExitIncomplete
	case errors.Is(err, configs.ErrConfig), errors.Is(err, datasets.ErrData), errors.Is(err, runner.ErrNotEmpty), isDiskFull(err):
		return ExitUsage
	}
	return exitFailed
}

// isDiskFull reports whether err was caused by a full disk. The files written before are complete,
// so the run can be resumed.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// MarkDiskFull sets the exit code of a batch that filled the disk: ExitIncomplete, or 1 if the
// batch is complete. It returns other errors, usage errors and any ExitError unchanged.
func MarkDiskFull(err error, complete bool) error {
	_, hasCode := errors.AsType[*ExitError](err)
	_, isUsage := errors.AsType[*usage.Error](err)
	switch {
	case hasCode || isUsage || !isDiskFull(err):
		return err
	case complete:
		return WithCode(err, exitFailed)
	}
	return WithCode(err, ExitIncomplete)
}

// Hint returns what the user can do about err, or "".
func Hint(err error) string {
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
	case isDiskFull(err):
		return "free disk space and run the command again; a batch resumes with the same -o"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied for this user; change the permissions (ls -ld shows them), or use another path"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only; use another path"
	case errors.Is(err, syscall.ENOTDIR):
		return "part of the path is a file instead of a folder; use another path"
	}
	return ""
}

// Sanitize makes a message safe for a terminal. It keeps newlines.
func Sanitize(s string) string {
	split := strings.Split(s, "\n")
	for i, l := range split {
		split[i] = text.Printable(l)
	}
	return strings.Join(split, "\n")
}

// ErrSessionEnded ends a session that the user interrupted, after mini has reported that.
var ErrSessionEnded = fmt.Errorf("the session has ended: %w", agent.ErrInterrupted)
