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
)

// Read yields the records of a journal, which may still be growing. An incomplete
// last line, written by a process that crashed, is skipped. The first error ends the
// sequence; it names the file and the line.
func Read(path string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
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

// Scan is Read for a reader. Errors contain name.
func Scan(name string, r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for l, err := range scan(name, r) {
			if !yield(l.Record, err) {
				return
			}
		}
	}
}

// scannedRecord is a record with the size of its line. Only the last line of a file
// may lack a newline.
type scannedRecord struct {
	Record
	size       int64
	terminated bool // the line ends with a newline
}

// scan reads one line at a time into memory.
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
			closed := err == nil
			if len(line) == 0 {
				return
			}
			rec, err := parseRecord(line, n == 1)
			if err != nil {
				if closed || errors.Is(err, errFormat) {
					yield(scannedRecord{}, fmt.Errorf("%s:%d: %w", name, n, err))
				}
				return // incomplete
			}
			if !yield(scannedRecord{rec, int64(len(line)), closed}, nil) || !closed {
				return
			}
			if buf = line; cap(buf) > keptBuffer {
				buf = nil
			}
		}
	}
}

// keptBuffer is the largest line buffer that is reused, in bytes.
const keptBuffer = 1 << 20

// ReadLine appends the next line to buf, including its newline. It returns io.EOF if
// the line has no newline, and an error if it is longer than limit bytes.
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

// ReadOutcome returns the outcome of a finished attempt, or false if its newest
// session has none yet. It reads only the end of the file, so checking the state of a
// large run is fast.
func ReadOutcome(path string) (Outcome, bool, error) {
	f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
	if err != nil {
		return Outcome{}, false, fmt.Errorf("read journal: %w", err)
	}
	defer func() { _ = f.Close() }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return Outcome{}, false, fmt.Errorf("read end of %s: %w", path, err)
	}
	line, start, err := lastLine(f, end)
	if err == nil && start > 0 && !json.Valid(line) { // incomplete
		line, _, err = lastLine(f, start)
	}
	if err != nil {
		return Outcome{}, false, fmt.Errorf("read end of %s: %w", path, err)
	}
	var r Record
	if json.Unmarshal(line, &r) != nil || r.Type != TypeOutcome {
		return Outcome{}, false, nil // the attempt has not ended
	}
	var o Outcome
	if err := json.Unmarshal(r.Data, &o); err != nil {
		return Outcome{}, false, fmt.Errorf("read outcome of %s: %w", path, err)
	}
	return o, true, nil
}

// lastLine returns the line that ends at offset end, and the offset of its start. It
// reads backwards in blocks.
func lastLine(f *os.File, end int64) ([]byte, int64, error) {
	const block = 64 << 10
	start := end
	for buf := make([]byte, block); start > 0; {
		n := min(start, block)
		if _, err := f.ReadAt(buf[:n], start-n); err != nil {
			return nil, 0, err
		}
		part := buf[:n]
		if start == end { // the final newline belongs to the line
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

// ReadHeader reads the header of a journal.
func ReadHeader(path string) (Header, error) {
	for r, err := range Read(path) {
		if err != nil {
			return Header{}, err
		}
		return DecodeHeader(r)
	}
	return Header{}, fmt.Errorf("%s: file is empty", path)
}

// DecodeHeader returns the header in the first record of a journal.
func DecodeHeader(r Record) (Header, error) {
	var h Header
	if err := json.Unmarshal(r.Data, &h); err != nil || r.Type != TypeHeader {
		return Header{}, errors.Join(fmt.Errorf("record %d is not a header", r.ID), err)
	}
	return h, nil
}
