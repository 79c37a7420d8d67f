// Package history remembers what a person typed, in a file for all sessions.
package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/internal/atomicfile"
)

// Bounds of a history.
const (
	// MaxEntries are the inputs that are remembered.
	MaxEntries = 1000
	// maxEntry is the longest input that is, in bytes.
	maxEntry = 64 << 10
	maxFile  = 2 * MaxEntries * maxEntry
)

// History remembers inputs in a file, which several sessions may share. The
// file has a line of JSON for each, so that they may have lines themselves. An
// empty path remembers for as long as the History lives.
type History struct {
	path    string
	entries []string
}

// Open reads a history. A file that is not there is an empty one, and
// lines that cannot be read are passed over.
func Open(path string) (*History, error) {
	h := &History{path: path}
	if path == "" {
		return h, nil
	}
	var err error
	if h.entries, err = readEntries(path); err == nil {
		err = h.trim()
	}
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return h, nil
}

// Entries are the inputs, the oldest first.
func (h *History) Entries() []string { return h.entries[max(0, len(h.entries)-MaxEntries):] }

// Add remembers an input, also where it cannot be written. One that is empty,
// too long, the same as the last one, or begins with a space is not remembered.
func (h *History) Add(text string) error {
	last := len(h.entries) > 0 && h.entries[len(h.entries)-1] == text
	if strings.TrimSpace(text) == "" || text[0] == ' ' || len(text) > maxEntry || last {
		return nil
	}
	h.entries = append(h.entries, text)
	if h.path == "" {
		return nil
	}
	line, err := json.Marshal(text)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(h.path), 0o700)
	}
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	_, err = f.Write(append(line, '\n')) // as one piece, which others append after
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// trim leaves the newest entries in the file, once it has many more.
func (h *History) trim() error {
	if len(h.entries) <= 2*MaxEntries {
		return nil
	}
	h.entries = h.entries[len(h.entries)-MaxEntries:]
	var b bytes.Buffer
	for _, e := range h.entries {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	return atomicfile.Write(h.path, b.Bytes(), 0o600)
}

func readEntries(path string) ([]string, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("%s is no history", path)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the user's own
	if err != nil {
		return nil, err
	}
	var entries []string
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxFile)
	for lines.Scan() {
		var e string
		if json.Unmarshal(lines.Bytes(), &e) == nil && e != "" {
			entries = append(entries, e)
		}
	}
	return entries, lines.Err()
}
