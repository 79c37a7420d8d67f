package trajectories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// maxLine bounds a line of a journal, in bytes. The largest record is an outcome with
// a submission of 100 MB, which JSON escapes can make six times as long.
const maxLine = 512 << 20

// ErrClosed is returned by Append after Close.
var ErrClosed = errors.New("journal is closed")

// Journal appends the records of one attempt to a file. It is safe for concurrent
// use. Each record is written by one write call.
type Journal struct {
	mu   sync.Mutex
	file file
	size int64 // size of the file up to its last complete line
	last int   // ID of the newest record
	err  error // error of an earlier write, after which Append fails
	sync SyncPolicy

	redact func(text []byte) []byte // nil changes nothing
}

// file is the part of *os.File that a Journal needs.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// Create creates a journal and writes its header, with Header.Format set. It fails if
// the file exists, so an attempt is never overwritten. The umask determines who can
// read the file.
func Create(path string, h Header) (*Journal, error) {
	flags := os.O_WRONLY | os.O_APPEND | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path, flags, 0o644) //nolint:gosec // G302: results are shared; the umask decides
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	j, err := NewJournal(f, h)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path)) //nolint:gosec // G703: it is the file that was just made
	}
	return j, nil
}

// NewJournal is Create for a new, empty file that is open for appending. The journal
// closes the file; NewJournal closes it if it fails.
func NewJournal(f *os.File, h Header) (*Journal, error) {
	j := &Journal{file: f, redact: h.Redact}
	h.Format = Format
	if _, err := j.Append(TypeHeader, h); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// Append adds a record after the newest one and returns it. If data cannot be encoded
// as JSON, Append fails and the journal is unchanged. If the write fails (for
// example, because the disk is full), the file is truncated to its last complete line
// and all later calls of Append fail, so a partial line is never followed by another
// line.
func (j *Journal) Append(t Type, data any) (Record, error) {
	if x, ok := data.(Execution); ok {
		data = x.jsonValue()
	}
	body, err := encode(data)
	if err != nil {
		return Record{}, fmt.Errorf("append %s record: %w", t, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.append(t, j.last, body)
}

// append adds a record after any other record. The caller holds j.mu.
func (j *Journal) append(t Type, parent int, body []byte) (Record, error) {
	if j.err != nil {
		return Record{}, fmt.Errorf("append %s record: %w", t, j.err)
	}
	r := Record{ID: j.last + 1, Parent: parent, Type: t, Time: time.Now().UTC(), Data: body}
	if j.redact != nil {
		data, err := RedactJSON(body, j.redact)
		if err != nil {
			return Record{}, fmt.Errorf("append %s record: %w", t, err)
		}
		r.Data, r.Redacted = data, !bytes.Equal(data, body)
	}
	line, err := r.line()
	if err != nil {
		return Record{}, fmt.Errorf("append %s record: %w", t, err)
	}
	if err := j.write(line); err != nil {
		return Record{}, fmt.Errorf("append %s record: %w", t, err)
	}
	j.last = r.ID
	return r, nil
}

func (j *Journal) write(line []byte) error {
	if _, err := j.file.Write(line); err != nil {
		j.err = errors.Join(err, j.file.Truncate(j.size))
		return j.err
	}
	j.size += int64(len(line))
	if j.sync == SyncRecord {
		j.err = j.file.Sync()
	}
	return j.err
}

// SyncPolicy says when a journal is flushed to disk with fsync. Without fsync,
// records survive a crash of mini, but not a power failure.
type SyncPolicy string

// The sync policies.
const (
	SyncNever   SyncPolicy = "never"   // leave it to the operating system
	SyncAttempt SyncPolicy = "attempt" // on Close; the default
	SyncRecord  SyncPolicy = "record"  // after each record
)

// SetSyncPolicy sets the policy.
func (j *Journal) SetSyncPolicy(s SyncPolicy) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sync = s
}

// Close flushes the journal to disk, unless the policy is SyncNever, and closes it.
// Further calls do nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(j.err, ErrClosed) {
		return nil
	}
	j.err = ErrClosed
	var err error
	if j.sync != SyncNever {
		err = j.file.Sync()
	}
	if err := errors.Join(err, j.file.Close()); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// line returns the record as a line of the file. Data is copied, not encoded again,
// since it can be large.
func (r Record) line() ([]byte, error) {
	head, err := encode(struct {
		ID     int       `json:"id"`
		Parent int       `json:"parent_id"`
		Type   Type      `json:"type"`
		Time   time.Time `json:"time"`
	}{r.ID, r.Parent, r.Type, r.Time})
	if err != nil {
		return nil, err
	}
	const key, end = `,"data":`, "}\n"
	n := len(head) - 1 + len(key) + len(r.Data) + len(end)
	if n > maxLine {
		return nil, fmt.Errorf("%d bytes, allowed %d", n, maxLine)
	}
	line := make([]byte, 0, n)
	line = append(line, head[:len(head)-1]...)
	line = append(line, key...)
	line = append(line, r.Data...)
	return append(line, end...), nil
}

// encode is json.Marshal without HTML escapes, which would make patches and shell
// commands hard to read and search.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
