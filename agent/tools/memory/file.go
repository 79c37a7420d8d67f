package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// version is the version of the file format.
const version = 1

// storedNotes is the content of a notes file.
type storedNotes struct {
	Version int `json:"version"`
	// Next is the ID of the next note.
	Next  int    `json:"next"`
	Notes []Note `json:"notes"`
}

// damagedError returns an error for an invalid file. The file is not modified.
func damagedError(format string, args ...any) error {
	return fmt.Errorf("read notes: %s; repair the file or move it away", fmt.Sprintf(format, args...))
}

// ErrNewerVersion reports that the file was written by a newer version of mini. The
// file is not modified.
var ErrNewerVersion = errors.New("the notes were written by a newer version of mini; update mini")

// readFile reads a notes file. If the file does not exist, it returns no notes.
func readFile(path string) (*storedNotes, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &storedNotes{Version: version, Next: 1}, nil
	case err != nil:
		return nil, fmt.Errorf("read notes: %w", err)
	case !info.Mode().IsRegular():
		return nil, damagedError("not a regular file")
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
	return parseNotes(data)
}

// parseNotes parses the content of a file.
func parseNotes(data []byte) (*storedNotes, error) {
	if len(data) > maxFile {
		return nil, damagedError("the file is larger than %d MB", maxFile>>20)
	}
	var header struct{ Version int }
	if err := json.Unmarshal(data, &header); err != nil {
		return nil, damagedError("invalid JSON: %.100v", err)
	}
	if header.Version > version {
		return nil, ErrNewerVersion
	}
	stored := &storedNotes{}
	if err := json.Unmarshal(data, stored); err != nil {
		return nil, damagedError("invalid JSON: %.100v", err)
	}
	if stored.Version != version {
		return nil, damagedError("the version is missing")
	}
	for _, n := range stored.Notes {
		stored.Next = max(stored.Next, n.ID+1) // IDs are never reused
	}
	return stored, nil
}

// textSize returns the size of all texts in bytes.
func (s *storedNotes) textSize() int {
	n := 0
	for _, note := range s.Notes {
		n += len(note.Text)
	}
	return n
}

// encode returns the content of the file, indented for human readers. Angle
// brackets are not escaped.
func (s *storedNotes) encode() ([]byte, error) {
	if s.Notes == nil {
		s.Notes = []Note{}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("write notes: %w", err)
	}
	return []byte(b.String()), nil
}
