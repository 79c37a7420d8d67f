// Package filetools implements the tools read, write and edit, which mini-tool runs inside
// the sandbox. Their output is meant for language models.
//
// Each tool prints its result to Out and exits with 0. It prints failures to Err and
// exits with 1. For invalid arguments, it prints an error and the usage to Err and
// exits with 2. A file is replaced atomically or left unchanged, and no temporary file
// remains unless the tool is killed. Unchanged parts of a file are preserved byte for
// byte.
//
// The package imports the standard library only, because the helper links it.
//
//	code := filetools.Run("read", []string{"main.go", "--limit", "40"}, filetools.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
package filetools

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2 // invalid arguments
)

// Streams are the standard streams of a tool. In is read only if the arguments require
// it.
type Streams struct {
	In       *os.File
	Out, Err io.Writer
}

// Run runs one of the tools in Specs and returns its exit code.
func Run(name string, args []string, s Streams) int {
	spec, ok := findSpec(name)
	if !ok {
		return s.report(name, usagef("there is no such tool"))
	}
	if isHelpRequest(args) {
		_, err := fmt.Fprintf(s.Out, "%s: %s\n%s", spec.Name, spec.Summary, spec.help())
		return s.report(name, err)
	}
	var err error
	switch name {
	case "read":
		err = read(args, s)
	case "write":
		err = write(args, s)
	default:
		err = edit(args, s)
	}
	return s.report(name, err)
}

// isHelpRequest reports whether help is the only argument: elsewhere, "--help" may be
// a text.
func isHelpRequest(args []string) bool {
	return len(args) == 1 && (args[0] == "--help" || args[0] == "-h")
}

// report prints an error, if not nil, and returns the exit code.
func (s Streams) report(name string, err error) int {
	if err == nil {
		return 0
	}
	text := fmt.Sprintf("mini-tool: %s: %v\n", name, err)
	code := exitFailure
	if _, ok := errors.AsType[*usageError](err); ok {
		code = exitUsage
		if spec, ok := findSpec(name); ok {
			text += spec.help()
		}
	}
	_, _ = io.WriteString(s.Err, text) // the error cannot be reported elsewhere
	return code
}

// usageError is a mistake in the arguments.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// quoted returns a name for display, in quotes if it is empty or has unprintable
// characters.
func quoted(name string) string {
	isUnprintable := func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
	if name == "" || strings.ContainsFunc(name, isUnprintable) {
		return strconv.Quote(name)
	}
	return name
}

// fileError returns an error that says why a file cannot be used.
func fileError(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return notFound(name)
	}
	return fmt.Errorf("%s: %w", quoted(name), rootCause(err))
}

// notFound returns an error that says whether the file or its folder does not exist.
func notFound(name string) error {
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		_, err := os.Stat(dir)
		switch parent := filepath.Dir(dir); {
		case err == nil && dir == filepath.Dir(name):
			return fmt.Errorf("%s: there is no such file", quoted(name))
		case err == nil || parent == dir || !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s: there is no such file, and no folder of that name", quoted(name))
		}
	}
}

// checkRegular returns an error if a path is not a regular file.
func checkRegular(name string, info fs.FileInfo) error {
	var kind string
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return fmt.Errorf("%s is a folder; ls shows what is in it", quoted(name))
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	default:
		kind = "a device"
	}
	return fmt.Errorf("%s is %s and not a file", quoted(name), kind)
}

// rootCause removes the operation and the path from an error, because the caller's
// message names them already.
func rootCause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// counted returns a number with its noun, such as "1 line" or "3 lines".
func counted[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun + "s"
}
