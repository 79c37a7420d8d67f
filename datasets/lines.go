package datasets

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxRow bounds one row, in bytes. The largest official row has about 10 MB.
const maxRow = 256 << 20

// maxSpace bounds white space where a row could be, in bytes: gzip makes 20 GB
// of it a small file.
const maxSpace = 1 << 20

var errSpace = fmt.Errorf("more than %d MB of white space", maxSpace>>20)

// eachRow calls f with every row of a text of JSON, numbered from 1. The bytes
// are valid during the call only. It goes by the first byte, not by the name:
// many a .json file has a row a line, and the other way round. Errors name the
// row, not the file; those of f end the reading, and are returned as they are.
func eachRow(ctx context.Context, r *bufio.Reader, f func(row int, raw []byte) error) error {
	first, err := skipSpace(ctx, r)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	case first == '[':
		return eachOfList(ctx, r, f)
	default:
		return eachLine(ctx, r, f)
	}
}

func eachLine(ctx context.Context, r *bufio.Reader, f func(int, []byte) error) error {
	var line []byte
	blank := 0 // bytes of the blank lines before this one
	for row := 1; ; row++ {
		var err error
		line, err = readLine(r, line[:0])
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return fmt.Errorf("row %d: %w", row, err)
		}
		if row == 1 && !ended && string(bytes.TrimSpace(line)) == "{" {
			return errors.New("an object over several lines; a row a line is needed, or a list of rows")
		}
		if len(bytes.TrimSpace(line)) > 0 {
			blank = 0
			if err := f(row, line); err != nil {
				return err
			}
		} else if blank += len(line); blank > maxSpace {
			return fmt.Errorf("row %d: %w", row, errSpace)
		}
		if ended {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// readLine appends the next line to line.
func readLine(r *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxRow {
			return nil, fmt.Errorf("longer than %d MB", maxRow>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// meter fails a read when too much has come since it was last set back.
type meter struct {
	r io.Reader
	n int
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.n > maxRow {
		return 0, fmt.Errorf("longer than %d MB", maxRow>>20)
	}
	n, err := m.r.Read(p)
	m.n += n
	return n, err
}

func eachOfList(ctx context.Context, r io.Reader, f func(int, []byte) error) error {
	metered := &meter{r: r}
	dec := json.NewDecoder(metered)
	if _, err := dec.Token(); err != nil { // the opening bracket
		return err
	}
	row := 0
	var raw json.RawMessage
	for dec.More() {
		row++
		metered.n = 0
		if err := dec.Decode(&raw); err != nil {
			return fmt.Errorf("row %d: %w", row, explain(err))
		}
		if err := f(row, raw); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("after row %d: the list does not end: %w", row, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("after row %d: something follows the end of the list", row)
	}
	return nil
}

// skipSpace passes white space and a byte order mark, and peeks at what
// follows.
func skipSpace(ctx context.Context, r *bufio.Reader) (byte, error) {
	if bom, err := r.Peek(3); err == nil && string(bom) == "\ufeff" {
		_, _ = r.Discard(3) // just peeked
	}
	for passed := 0; ; {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if _, err := r.Peek(1); err != nil {
			return 0, err
		}
		here, _ := r.Peek(r.Buffered()) // what is buffered is there
		rest := bytes.TrimLeft(here, " \t\r\n\v\f")
		if passed += len(here) - len(rest); passed > maxSpace {
			return 0, errSpace
		}
		if len(rest) > 0 {
			first := rest[0]
			_, _ = r.Discard(len(here) - len(rest)) // just peeked
			return first, nil
		}
		_, _ = r.Discard(len(here)) // just peeked
	}
}
