package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds what is written, and what is edited, in bytes: it is held.
const maxFile = 64 << 20

// write replaces a file, or makes it with the folders that it lies in.
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
	t, err := aim(name)
	if err != nil {
		return err
	}
	if !t.exists() {
		if err := os.MkdirAll(filepath.Dir(t.path), 0o777); err != nil { //nolint:gosec // as mkdir -p does; the umask decides
			return t.folders(err)
		}
	}
	if err := t.replace(content); err != nil {
		return err
	}
	what := "created"
	if t.exists() {
		what = "overwrote"
	}
	_, err = fmt.Fprintf(s.Out, "%s %s: %s%s\n", what, quoted(name), extent(content), t.note())
	return err
}

// content is the text to write: the second argument, or standard input where that
// is "-", or not there and standard input has something.
func (a arguments) content(s Streams) ([]byte, error) {
	if len(a.rest) == 2 && (a.rest[1] != "-" || a.plain > 0) {
		return []byte(a.rest[1]), nil
	}
	if len(a.rest) < 2 && !s.offers() {
		return nil, usagef("there is no text to write")
	}
	return s.input()
}

// offers says that standard input is a here-document, a file or a pipe.
func (s Streams) offers() bool {
	if s.In == nil {
		return false
	}
	info, err := s.In.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeNamedPipe != 0)
}

// input is all of standard input.
func (s Streams) input() ([]byte, error) {
	if s.In == nil {
		return nil, errors.New("standard input is closed")
	}
	b, err := io.ReadAll(io.LimitReader(s.In, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("standard input cannot be read: %w", reason(err))
	case len(b) > maxFile:
		return nil, usagef("standard input has more than %d MB; write such a file with cat > FILE", maxFile>>20)
	}
	return b, nil
}

// extent is how much text there is.
func extent(b []byte) string {
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

// folders says why the folders of a file cannot be made.
func (t target) folders(err error) error {
	dir := filepath.Dir(t.path)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		dir = e.Path
	}
	return fmt.Errorf("%s: the folder %s cannot be made: %w", quoted(t.name), quoted(dir), reason(err))
}
