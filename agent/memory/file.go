package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// version is that of the file's form.
const version = 1

// content is what a file has.
type content struct {
	Version int `json:"version"`
	// Next is the id of the next note.
	Next  int    `json:"next"`
	Notes []Note `json:"notes"`
}

// damaged says why a file is no file of notes. It stays as it is.
func damaged(format string, args ...any) error {
	return fmt.Errorf("the notes cannot be read, %s; mend their file, or move it away", fmt.Sprintf(format, args...))
}

// ErrNewer says that a newer mini wrote the file; it is left as it is.
var ErrNewer = errors.New("the notes were written by a newer mini; update this one")

// read reads a file; one that is not there has no notes.
func read(path string) (*content, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &content{Version: version, Next: 1}, nil
	case err != nil:
		return nil, fmt.Errorf("read notes: %w", err)
	case !info.Mode().IsRegular():
		return nil, damaged("it is no regular file")
	}
	f, err := os.Open(path) //nolint:gosec // the caller's own
	if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	return parse(data)
}

// parse reads the text of a file. Whatever mini would not have written there is
// damage, but for what a newer one may have written.
func parse(data []byte) (*content, error) {
	if len(data) > maxFile {
		return nil, damaged("it is larger than %d MB", maxFile>>20)
	}
	var v struct{ Version json.Number }
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, damaged("it is not the JSON of notes: %.100v", err)
	}
	if n, err := v.Version.Int64(); err == nil && n > version {
		return nil, ErrNewer
	}
	c := &content{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, damaged("it is not the JSON of notes: %.100v", err)
	}
	if c.Version != version {
		return nil, damaged("it has no version")
	}
	return c, c.check()
}

// check finds what cannot be, and makes sure that no id is given again.
func (c *content) check() error {
	if len(c.Notes) > MaxNotes {
		return damaged("it has more than %d notes", MaxNotes)
	}
	seen, size := map[int]bool{}, 0
	for _, n := range c.Notes {
		if err := n.check(); err != nil {
			return damaged("%v", err)
		}
		if seen[n.ID] {
			return damaged("two notes have the id %d", n.ID)
		}
		seen[n.ID] = true
		size += len(n.Text)
		c.Next = max(c.Next, n.ID+1)
	}
	if size > MaxText {
		return damaged("its notes have more than %d KB", MaxText>>10)
	}
	if c.Next < 1 || c.Next > maxID {
		return damaged("%d is no id of a note", c.Next)
	}
	return nil
}

// size is what all texts have, in bytes.
func (c *content) size() int {
	n := 0
	for _, note := range c.Notes {
		n += len(note.Text)
	}
	return n
}

// bytes are the text of the file: a line for each field, so that people can read
// it. Angle brackets stand as they are.
func (c *content) bytes() ([]byte, error) {
	if c.Notes == nil {
		c.Notes = []Note{}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("write notes: %w", err)
	}
	return []byte(b.String()), nil
}
