package filetools

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile is the maximum size of a file, in bytes, because it is held in memory.
const maxFile = 64 << 20

// write runs the tool write, which replaces a file, or creates it with its folders.
func write(args []string, s Streams) error {
	a, err := parse(args, nil)
	if err != nil {
		return err
	}
	name, err := a.file(2)
	if err != nil {
		return err
	}
	content, err := a.content(s)
	if err != nil {
		return err
	}
	t, err := resolveTarget(name)
	if err != nil {
		return err
	}
	if !t.exists() {
		if err := os.MkdirAll(filepath.Dir(t.path), 0o777); err != nil { //nolint:gosec // as mkdir -p does; the umask decides
			return t.mkdirError(err)
		}
	}
	if err := t.replace(content); err != nil {
		return err
	}
	verb := "created"
	if t.exists() {
		verb = "overwrote"
	}
	_, err = fmt.Fprintf(s.Out, "%s %s: %s%s\n", verb, quoted(name), sizeOf(content), t.note())
	return err
}

// content returns the text to write: the second argument, or standard input if that is
// "-" not after "--", or if it is missing and standard input is redirected (see
// hasInput).
func (a arguments) content(s Streams) ([]byte, error) {
	if len(a.args) == 2 && (a.args[1] != "-" || a.afterDashes > 0) {
		return []byte(a.args[1]), nil
	}
	if len(a.args) < 2 && !s.hasInput() {
		return nil, usagef("there is no text to write")
	}
	return s.readInput()
}

// hasInput reports whether standard input is a here-document, a file or a pipe.
func (s Streams) hasInput() bool {
	if s.In == nil {
		return false
	}
	info, err := s.In.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeNamedPipe != 0)
}

// readInput reads all of standard input.
func (s Streams) readInput() ([]byte, error) {
	if s.In == nil {
		return nil, errors.New("standard input is closed")
	}
	b, err := io.ReadAll(io.LimitReader(s.In, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("standard input cannot be read: %w", rootCause(err))
	case len(b) > maxFile:
		return nil, usagef("standard input has more than %d MB; write such a file with cat > FILE", maxFile>>20)
	}
	return b, nil
}

// sizeOf returns the number of lines and bytes of a text.
func sizeOf(b []byte) string {
	if len(b) == 0 {
		return "empty"
	}
	lines := bytes.Count(b, []byte("\n"))
	note := ""
	if b[len(b)-1] != '\n' {
		lines++
		note = ", no line end at the end"
	}
	return counted(lines, "line") + ", " + counted(len(b), "byte") + note
}

// mkdirError returns an error that says why the folders of a file cannot be created.
func (t target) mkdirError(err error) error {
	dir := filepath.Dir(t.path)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		dir = e.Path
	}
	return fmt.Errorf("%s: the folder %s cannot be made: %w", quoted(t.name), quoted(dir), rootCause(err))
}
