// Package files holds the tools read, write and edit, which mini-tool has in
// the sandbox itself: files for a language model, with answers that it can work
// by.
//
// Each prints what it did on Out and exits with 0; what the world is in the way
// of goes to Err, with 1; a mistake in the arguments to Err, with the usage and 2.
// A file that is written is replaced as a whole or left as it was: nobody sees
// half of it, and no temporary file stays. What is not to be changed stays as it
// is, byte for byte.
//
// Standard library only, because it is linked into the helper.
//
//	code := files.Run("read", []string{"main.go", "--limit", "40"}, files.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
package files

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
	failed  = 1 // the world is otherwise than the call has it
	misused = 2 // the arguments make no sense
)

// Streams are where a tool reads and writes. In is only read when its arguments
// say so.
type Streams struct {
	In       *os.File
	Out, Err io.Writer
}

// Run runs one of the tools that Specs names, and returns its exit code.
func Run(name string, args []string, s Streams) int {
	spec, ok := find(name)
	if !ok {
		return s.tell(name, usagef("there is no such tool"))
	}
	if asksForHelp(args) {
		_, err := fmt.Fprintf(s.Out, "%s: %s\n%s", spec.Name, spec.About, spec.help())
		return s.tell(name, err)
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
	return s.tell(name, err)
}

// asksForHelp says that nothing else is asked for: further on, "--help" may be a
// text.
func asksForHelp(args []string) bool {
	return len(args) == 1 && (args[0] == "--help" || args[0] == "-h")
}

// tell says what went wrong, if anything, and returns the exit code.
func (s Streams) tell(name string, err error) int {
	if err == nil {
		return 0
	}
	text := fmt.Sprintf("mini-tool: %s: %v\n", name, err)
	code := failed
	if _, ok := errors.AsType[*usageError](err); ok {
		code = misused
		if spec, ok := find(name); ok {
			text += spec.help()
		}
	}
	_, _ = io.WriteString(s.Err, text) // there is nobody else to tell
	return code
}

// usageError is a mistake in the arguments.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// quoted is a name as it can be shown: in quotes where it could be taken for
// something else.
func quoted(name string) string {
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
	if name == "" || strings.ContainsFunc(name, odd) {
		return strconv.Quote(name)
	}
	return name
}

// inTheWay says in a sentence why a file cannot be used.
func inTheWay(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return missing(name)
	}
	return fmt.Errorf("%s: %w", quoted(name), reason(err))
}

// missing says how much of a path there is not.
func missing(name string) error {
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

// special says what a thing is that is no file; nil for a file.
func special(name string, info fs.FileInfo) error {
	what := ""
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return fmt.Errorf("%s is a folder; ls shows what is in it", quoted(name))
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	default:
		what = "a device"
	}
	return fmt.Errorf("%s is %s and not a file", quoted(name), what)
}

// reason is an error without the operation and path that the sentence around it
// names.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// counted is a number of things, as "1 line" and "3 lines".
func counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(int64(n), 10) + " " + what + "s"
}
