package trajectories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"
	"time"
)

// maxLine bounds a line of a journal, in bytes; Append refuses a longer record. The
// largest record is an outcome with a submission of 100 MiB (env.SubmissionLimit). The
// record is too long only if most bytes of the patch are control characters, which JSON
// encodes in six bytes each.
const maxLine = 512 << 20

// ErrClosed is returned by Append after Close.
var ErrClosed = errors.New("journal is closed")

// Journal appends the records of one attempt to a file. It is safe for concurrent
// use. Each record is written by one write call.
type Journal struct {
	mu   sync.Mutex
	file file
	size int64 // bytes of the file up to the end of its last complete line
	last int   // ID of the newest record
	err  error // error of an earlier write, or ErrClosed; Append returns it
	sync SyncPolicy

	redact func(text []byte) []byte // Header.Redact or Resume.Redact
}

// file is the part of *os.File that a Journal needs.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// Create creates a journal and writes h to it, with Header.Format set to Format. It fails
// if the file exists, so an attempt is never overwritten. The umask determines who can
// read the file.
func Create(path string, h Header) (*Journal, error) {
	flags := os.O_WRONLY | os.O_APPEND | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path, flags, 0o644) //nolint:gosec // G302: results are shared; the umask decides
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	j, err := NewJournal(f, h)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path)) //nolint:gosec // G703: OpenFile has just created this file
	}
	return j, nil
}

// NewJournal is Create for an empty file that is open for appending. The journal owns
// the file: Close closes it, and so does NewJournal on an error.
func NewJournal(f *os.File, h Header) (*Journal, error) {
	j := &Journal{file: f, redact: h.Redact}
	h.Format = Format
	if _, err := j.Append(TypeHeader, h); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// Append adds a record whose parent is the newest record, and returns the added record.
// If data cannot be encoded as JSON or is too long, Append fails and the journal is
// unchanged. If the write fails (for example, because the disk is full), Append truncates
// the file to its last complete line and all later calls fail, so no line follows a
// partial line. If fsync fails, all later calls fail too.
func (j *Journal) Append(typ Type, data any) (Record, error) {
	body, err := encode(data)
	if err != nil {
		return Record{}, fmt.Errorf("append %s record: %w", typ, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.append(typ, j.last, body)
}

// append adds a record with the given parent. The caller holds j.mu, or no other goroutine
// has j yet.
func (j *Journal) append(typ Type, parent int, body []byte) (Record, error) {
	if j.err != nil {
		return Record{}, fmt.Errorf("append %s record: %w", typ, j.err)
	}
	r := Record{ID: j.last + 1, Parent: parent, Type: typ, Time: time.Now().UTC(), Data: body}
	if j.redact != nil {
		data, err := RedactJSON(body, j.redact)
		if err != nil {
			return Record{}, fmt.Errorf("append %s record: %w", typ, err)
		}
		r.Data, r.Redacted = data, !bytes.Equal(data, body)
	}
	line, err := r.line()
	if err != nil {
		return Record{}, fmt.Errorf("append %s record: %w", typ, err)
	}
	if err := j.write(line); err != nil {
		return Record{}, fmt.Errorf("append %s record: %w", typ, err)
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

// SyncPolicy determines when a journal calls fsync. Records that were written without
// fsync survive a crash of mini, but may be lost in a power failure.
type SyncPolicy string

// The sync policies.
const (
	SyncNever   SyncPolicy = "never"   // the operating system decides
	SyncAttempt SyncPolicy = "attempt" // on Close; the default
	SyncRecord  SyncPolicy = "record"  // after each record, and on Close
)

// SetSyncPolicy sets the policy for later calls of Append and Close.
func (j *Journal) SetSyncPolicy(policy SyncPolicy) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sync = policy
}

// Close calls fsync, unless the policy is SyncNever, and closes the file.
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

// line encodes the record as a line of the file. It copies r.Data instead of encoding
// it again, since the data can be large.
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
	const dataKey, end = `,"data":`, "}\n"
	size := len(head) - 1 + len(dataKey) + len(r.Data) + len(end)
	if size > maxLine {
		return nil, fmt.Errorf("%d bytes, allowed %d", size, maxLine)
	}
	line := make([]byte, 0, size)
	line = append(line, head[:len(head)-1]...)
	line = append(line, dataKey...)
	line = append(line, r.Data...)
	return append(line, end...), nil
}

// encode is json.Marshal without HTML escapes, because escapes make patches and shell
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

// WriteJournal creates a journal with existing records, whose IDs, parents and times do
// not change. It fails if the file exists. On a later error, it removes the file.
func WriteJournal(path string, records iter.Seq2[Record, error]) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path, flags, 0o644) //nolint:gosec // G302, G304: as in Create
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	err = WriteRecords(f, records)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write journal: %w", err), os.Remove(path))
	}
	return nil
}

// WriteRecords is WriteJournal for an io.Writer.
func WriteRecords(w io.Writer, records iter.Seq2[Record, error]) error {
	first := true
	for r, err := range records {
		if err != nil {
			return err
		}
		if first {
			if _, err := DecodeHeader(r); err != nil {
				return err
			}
			first = false
		}
		line, err := r.line()
		if err != nil {
			return fmt.Errorf("record %d: %w", r.ID, err)
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	if first {
		return errors.New("no records")
	}
	return nil
}

// EncodeJSON is json.Marshal without HTML escapes, as in records.
func EncodeJSON(data any) ([]byte, error) { return encode(data) }
