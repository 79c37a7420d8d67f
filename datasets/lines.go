package datasets

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxRow limits one row, in bytes. The largest official row has about 10 MB.
const maxRow = 256 << 20

// eachRow calls f with every row of a JSON text and its number. In the lines format that is
// the number of the line, counted from the first row and including blank lines; in a list it
// is that of the item. The bytes are valid only during the call. eachRow detects the format
// from the first byte that is not white space, since file extensions are often wrong. Its errors
// contain the row, if they are about one, but not the file. An error of f ends the loop and
// is returned unchanged.
func eachRow(ctx context.Context, r *bufio.Reader, f func(row int, raw []byte) error) error {
	first, err := skipSpace(ctx, r)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	case first == '[':
		return eachItem(ctx, &nanReader{in: r}, f)
	default:
		return eachLine(ctx, r, f)
	}
}

func eachLine(ctx context.Context, r *bufio.Reader, f func(int, []byte) error) error {
	var line []byte
	for row := 1; ; row++ {
		var err error
		line, err = readLine(r, line[:0])
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return fmt.Errorf("row %d: %w", row, err)
		}
		if row == 1 && !ended && string(bytes.TrimSpace(line)) == "{" {
			return errors.New("an object over several lines; use one row per line, or a list of rows")
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := f(row, line); err != nil {
				return err
			}
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

// rowLimiter is a reader that fails when n exceeds maxRow. Its user resets n for each row.
type rowLimiter struct {
	r io.Reader
	n int
}

// Read implements io.Reader.
func (l *rowLimiter) Read(p []byte) (int, error) {
	if l.n > maxRow {
		return 0, fmt.Errorf("longer than %d MB", maxRow>>20)
	}
	n, err := l.r.Read(p)
	l.n += n
	return n, err
}

func eachItem(ctx context.Context, r io.Reader, f func(int, []byte) error) error {
	limited := &rowLimiter{r: r}
	dec := json.NewDecoder(limited)
	if _, err := dec.Token(); err != nil { // the opening bracket
		return err
	}
	row := 0
	var raw json.RawMessage
	for dec.More() {
		row++
		limited.n = 0
		if err := dec.Decode(&raw); err != nil {
			return fmt.Errorf("row %d: %w", row, jsonError(err))
		}
		if err := f(row, raw); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("after row %d: the list is not closed: %w", row, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("after row %d: unexpected data after the list", row)
	}
	return nil
}

// skipSpace skips a byte order mark, then white space, and returns the next byte without
// consuming it.
func skipSpace(ctx context.Context, r *bufio.Reader) (byte, error) {
	if bom, err := r.Peek(3); err == nil && string(bom) == "\ufeff" {
		_, _ = r.Discard(3) // just peeked
	}
	for ctx.Err() == nil {
		b, err := r.ReadByte()
		if err != nil || !strings.ContainsRune(" \t\r\n\v\f", rune(b)) {
			_ = r.UnreadByte() // just read
			return b, err
		}
	}
	return 0, context.Cause(ctx)
}
