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

// maxLine bounds one line of a journal, in bytes. The largest thing an attempt
// writes is a submission (100 MB), which may grow sixfold in JSON at worst.
const maxLine = 512 << 20

// ErrClosed is returned by Append after Close.
var ErrClosed = errors.New("journal is closed")

// Journal appends the records of one attempt to a file. It is safe for
// concurrent use. A record costs one write call, whatever stands before it.
type Journal struct {
	mu   sync.Mutex
	file file
	size int64 // up to here the file holds whole lines
	last int   // the newest record's id
	err  error // why nothing more can be written
	sync Sync

	redact func(text []byte) []byte // nil changes nothing
}

// file is what a Journal needs of an *os.File.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// Create makes a new journal and writes its header; Format is filled in. It
// fails when the file exists: an attempt is never overwritten. The file can be
// read by whom the umask allows, as the other files of a run.
func Create(path string, h Header) (*Journal, error) {
	flags := os.O_WRONLY | os.O_APPEND | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path, flags, 0o644) //nolint:gosec // G302: results are shared; the umask decides
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	j, err := CreateIn(f, h)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path)) //nolint:gosec // G703: it is the file that was just made
	}
	return j, nil
}

// CreateIn is Create in a file that is open for appending, new and empty. The
// journal closes it, and so does an error.
func CreateIn(f *os.File, h Header) (*Journal, error) {
	j := &Journal{file: f, redact: h.Redact}
	h.Format = Format
	if _, err := j.Append(TypeHeader, h); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// Append adds a record that follows the newest one, and returns it. Data that
// has no JSON form is refused and changes nothing. After a write that failed
// (a full disk) the file is cut back to its last whole line, and this and
// every later Append fail: a torn line is never followed by another.
func (j *Journal) Append(t Type, data any) (Record, error) {
	if x, ok := data.(Execution); ok {
		data = x.form()
	}
	body, err := encode(data)
	if err != nil {
		return Record{}, fmt.Errorf("append %s record: %w", t, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.append(t, j.last, body)
}

// append adds a record that follows any other; the lock is held.
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

// Sync says when a journal is brought to the disk. What was written outlives its
// mini whatever it says; it is for a machine that loses power.
type Sync string

// The policies of Sync.
const (
	SyncNever   Sync = "never"   // when the system finds the time
	SyncAttempt Sync = "attempt" // on Close; the default
	SyncRecord  Sync = "record"  // with every record, before anything follows from it
)

// Sync sets the policy.
func (j *Journal) Sync(s Sync) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sync = s
}

// Close closes the journal, and brings it to the disk before, as far as its Sync
// asks for that. A second Close does nothing.
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

// line is the record as it stands in the file. The data is spliced in, not
// encoded again: it is the bulk of a line.
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

// encode is json.Marshal without the escapes for HTML, which would make
// patches and shell commands hard to read and search.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
