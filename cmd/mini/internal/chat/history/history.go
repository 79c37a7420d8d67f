// Package history remembers what a person typed, in a file for all sessions.
package history

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/internal/atomicfile"
)

// Bounds of a history.
const (
	// MaxEntries are the inputs that are remembered.
	MaxEntries = 1000
	// maxEntry is the longest input that is, in bytes.
	maxEntry = 64 << 10
	maxFile  = MaxEntries * maxEntry
	// patience is how long another mini may write.
	patience = 3 * time.Second
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
	if h.entries, err = readEntries(path); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return h, nil
}

// Entries are the inputs, the oldest first.
func (h *History) Entries() []string { return h.entries }

// Add remembers an input, also where it cannot be written. One that is empty,
// too long, the same as the last one, or begins with a space is not remembered.
func (h *History) Add(ctx context.Context, text string) error {
	if strings.TrimSpace(text) == "" || text[0] == ' ' || len(text) > maxEntry {
		return nil
	}
	h.entries = add(h.entries, text)
	if h.path == "" {
		return nil
	}
	if err := h.write(ctx, text); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

func (h *History) write(ctx context.Context, text string) error {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	lock := flock.New(h.path+".lock", flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if ok, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil || !ok {
		return fmt.Errorf("lock %s: %w", h.path, err)
	}
	return errors.Join(h.replace(text), lock.Unlock())
}

// replace writes the file anew, with what others have added to it.
func (h *History) replace(text string) error {
	entries, err := readEntries(h.path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, e := range add(entries, text) {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return atomicfile.Write(h.path, b.Bytes(), 0o600)
}

func add(entries []string, text string) []string {
	if len(entries) > 0 && entries[len(entries)-1] == text {
		return entries
	}
	entries = append(entries, text)
	return entries[max(0, len(entries)-MaxEntries):]
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
	return entries[max(0, len(entries)-MaxEntries):], lines.Err()
}
