package trajectories

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/minibench/mini/internal/rootdir"
)

// Read yields the records of the journal at path. Another process may still append to
// it. Read skips an incomplete last line, which a crash leaves behind. The first error
// ends the sequence; the error names the file and, unless the file cannot be opened, the
// line.
func Read(path string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f, err := rootdir.OpenRegular(path, 0)
		if err != nil {
			yield(Record{}, fmt.Errorf("read journal: %w", err))
			return
		}
		defer func() { _ = f.Close() }()
		for r, err := range Scan(path, f) {
			if !yield(r, err) {
				return
			}
		}
	}
}

// Scan is Read for an io.Reader. Errors contain name instead of a path.
func Scan(name string, r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for l, err := range scan(name, r) {
			if !yield(l.Record, err) {
				return
			}
		}
	}
}

// scannedRecord is a record with properties of its line.
type scannedRecord struct {
	Record
	size       int64 // bytes of the line, including the newline if there is one
	terminated bool  // the line ends with a newline; only the last line may lack it
}

// scan is Scan, but also yields the properties of each line. It holds one line at a
// time in memory.
func scan(name string, r io.Reader) iter.Seq2[scannedRecord, error] {
	return func(yield func(scannedRecord, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		var buf []byte
		for n := 1; ; n++ {
			line, err := ReadLine(in, buf[:0], maxLine)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(scannedRecord{}, fmt.Errorf("%s:%d: %w", name, n, err))
				return
			}
			terminated := err == nil
			if len(line) == 0 {
				return
			}
			rec, err := parseRecord(line, n == 1)
			if err != nil {
				if terminated || errors.Is(err, errFormat) {
					yield(scannedRecord{}, fmt.Errorf("%s:%d: %w", name, n, err))
				}
				return // the last line is incomplete
			}
			if !yield(scannedRecord{rec, int64(len(line)), terminated}, nil) || !terminated {
				return
			}
			if buf = line; cap(buf) > maxReusedBuffer {
				buf = nil
			}
		}
	}
}

// maxReusedBuffer is the largest line buffer that is reused, in bytes.
const maxReusedBuffer = 1 << 20

// ReadLine appends the next line to buf, including its newline. It returns io.EOF with
// a last line that has no newline, and another error if buf exceeds limit bytes.
func ReadLine(in *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(buf)+len(part) > limit {
			return nil, fmt.Errorf("line of more than %d bytes", limit)
		}
		buf = append(buf, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, err
		}
	}
}

var errFormat = errors.New("not a journal of format " + Format)

func parseRecord(line []byte, first bool) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, fmt.Errorf("not a record: %w", err)
	}
	if r.ID < 1 || r.Type == "" {
		return Record{}, errors.New("not a record: id or type is missing")
	}
	if !first {
		return r, nil
	}
	var h Header
	if err := json.Unmarshal(r.Data, &h); r.Type != TypeHeader || err != nil || h.Format != Format {
		return Record{}, errFormat
	}
	return r, nil
}

// ReadOutcome returns the outcome of the attempt in the journal at path. It returns
// false if the last record is not an outcome: the attempt, or the session that resumed
// it, is running or was killed. ReadOutcome reads only the end of the file, so that the
// state of a run with many attempts can be read fast.
func ReadOutcome(path string) (Outcome, bool, error) {
	f, err := rootdir.OpenRegular(path, 0)
	if err != nil {
		return Outcome{}, false, fmt.Errorf("read journal: %w", err)
	}
	defer func() { _ = f.Close() }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return Outcome{}, false, fmt.Errorf("read end of %s: %w", path, err)
	}
	line, start, err := lastLine(f, end)
	if err == nil && start > 0 && !json.Valid(line) { // the last line is incomplete
		line, _, err = lastLine(f, start)
	}
	if err != nil {
		return Outcome{}, false, fmt.Errorf("read end of %s: %w", path, err)
	}
	var r Record
	if json.Unmarshal(line, &r) != nil || r.Type != TypeOutcome {
		return Outcome{}, false, nil // no outcome yet
	}
	var o Outcome
	if err := json.Unmarshal(r.Data, &o); err != nil {
		return Outcome{}, false, fmt.Errorf("read outcome of %s: %w", path, err)
	}
	return o, true, nil
}

// lastLine returns the line that ends at offset end, including its newline if there is
// one, and the offset of the start of the line. It searches backwards in blocks.
func lastLine(f *os.File, end int64) ([]byte, int64, error) {
	const blockSize = 16 << 10
	start := end
	for buf := make([]byte, blockSize); start > 0; {
		n := min(start, blockSize)
		if _, err := f.ReadAt(buf[:n], start-n); err != nil {
			return nil, 0, err
		}
		part := buf[:n]
		if start == end { // skip the newline of the line itself
			part = bytes.TrimSuffix(part, []byte("\n"))
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			start += int64(i+1) - n
			break
		}
		start -= n
		if end-start > maxLine {
			return nil, 0, fmt.Errorf("line of more than %d bytes", maxLine)
		}
	}
	line := make([]byte, end-start)
	_, err := f.ReadAt(line, start)
	if errors.Is(err, io.EOF) && len(line) == 0 {
		err = nil
	}
	return line, start, err
}

// ReadHeader reads the header of the journal at path.
func ReadHeader(path string) (Header, error) {
	for r, err := range Read(path) {
		if err != nil {
			return Header{}, err
		}
		return DecodeHeader(r)
	}
	return Header{}, fmt.Errorf("%s: file is empty", path)
}

// DecodeHeader decodes the header from r, the first record of a journal.
func DecodeHeader(r Record) (Header, error) {
	var h Header
	if err := json.Unmarshal(r.Data, &h); err != nil || r.Type != TypeHeader {
		return Header{}, errors.Join(fmt.Errorf("record %d is not a header", r.ID), err)
	}
	return h, nil
}
