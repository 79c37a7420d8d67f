// Package history stores the user's inputs in a file shared by all sessions.
package history

import (
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
	// MaxEntries is the maximum number of inputs that Entries returns. The file may have more.
	MaxEntries = 1000
	// maxEntry is the maximum size of a stored input, in bytes.
	maxEntry = 64 << 10
)

// History stores inputs in a file, one JSON string per line. Several sessions may share the
// file. With an empty path, inputs are kept in memory only.
type History struct {
	path    string
	entries []string
}

// Open reads a history. A missing file is an empty history; invalid lines are skipped.
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

// Entries returns the inputs, oldest first.
func (h *History) Entries() []string { return h.entries[max(0, len(h.entries)-MaxEntries):] }

// Add stores an input; it stays in memory if the file cannot be written. Inputs that are
// blank, too long, equal to the last one, or begin with a space are not stored.
func (h *History) Add(text string) error {
	isRepeated := len(h.entries) > 0 && h.entries[len(h.entries)-1] == text
	if strings.TrimSpace(text) == "" || text[0] == ' ' || len(text) > maxEntry || isRepeated {
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
	_, err = f.Write(append(line, '\n')) // a single write: other sessions may append at the same time
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// trim removes all but the newest MaxEntries entries if the file has more than twice as many.
func (h *History) trim() error {
	if len(h.entries) <= 2*MaxEntries {
		return nil
	}
	h.entries = h.entries[len(h.entries)-MaxEntries:]
	var file bytes.Buffer
	for _, entry := range h.entries {
		line, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		file.Write(append(line, '\n'))
	}
	return atomicfile.Write(h.path, file.Bytes(), 0o600)
}

func readEntries(path string) ([]string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the user's own
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var entries []string
	for line := range bytes.Lines(text) {
		var entry string
		if json.Unmarshal(line, &entry) == nil && entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}
