package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/minibench/mini/trajectories"
)

// tail is how far a journal was read that grows.
type tail struct {
	path   string
	offset int64
	begun  bool
	// skips says that the rest of a line is passed over: reading began in the middle
	// of it, or it is longer than is read at once.
	skips bool
}

// Bounds of what is read at once, and of what stands at the end of a journal when it
// is opened, in bytes.
const (
	maxChunk = 4 << 20
	maxPast  = 1 << 20
)

// read returns the records that came since, and whether there is more to read now.
// The journal may be anything: what is no record is passed over.
func (t *tail) read() (records []trajectories.Record, more bool, err error) {
	info, err := os.Lstat(t.path)
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() {
		return nil, false, errors.New("the journal is not a plain file")
	}
	size := info.Size()
	if !t.begun {
		t.begun = true
		if size > maxPast {
			t.offset, t.skips = size-maxPast, true
		}
	}
	t.offset = min(t.offset, size) // it should not shrink, but for what is no whole line
	if size == t.offset {
		return nil, false, nil
	}
	f, err := os.Open(t.path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close() //nolint:errcheck // read only
	chunk := make([]byte, min(size-t.offset, maxChunk))
	n, err := f.ReadAt(chunk, t.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	records = t.take(chunk[:n])
	return records, n == maxChunk, nil
}

// take goes through the whole lines of a chunk.
func (t *tail) take(chunk []byte) (records []trajectories.Record) {
	whole := bytes.LastIndexByte(chunk, '\n') + 1
	if whole == 0 {
		if len(chunk) == maxChunk || t.skips {
			t.skips = true
			t.offset += int64(len(chunk))
		}
		return nil
	}
	t.offset += int64(whole)
	for line := range bytes.Lines(chunk[:whole]) {
		if t.skips {
			t.skips = false
			continue
		}
		var r trajectories.Record
		if json.Unmarshal(line, &r) == nil {
			records = append(records, r)
		}
	}
	return records
}
