package logs

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// ErrNotUTF8 says that a log is not valid UTF-8.
var ErrNotUTF8 = errors.New("the log is not valid UTF-8")

// Text is a log as the parsers read it: with universal newlines, where CRLF and
// a lone CR are \n. Invalid UTF-8 is ErrNotUTF8. The result is a copy; see Read
// for large logs.
func Text(raw []byte) (string, error) { return Read(bytes.NewReader(raw), int64(len(raw))) }

// Replaced is Text for any bytes: for what is not valid UTF-8 it has U+FFFD, as
// Valid does.
func Replaced(raw []byte) string {
	var d newlines
	d.b.Grow(len(raw))
	d.write(Valid(raw))
	return d.b.String()
}

// Read is Text of what r gives, without a second copy of it. Size is about how
// much that is, in bytes; 0 means unknown. Errors are those of r, and ErrNotUTF8.
func Read(r io.Reader, size int64) (string, error) {
	const block = 64 << 10
	var d newlines
	d.b.Grow(int(min(max(size, 0), maxGrow)))
	buf := make([]byte, block)
	for {
		n, err := r.Read(buf)
		d.write(buf[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	text := d.b.String()
	if !utf8.ValidString(text) {
		return "", ErrNotUTF8
	}
	return text, nil
}

// maxGrow is the largest size that Read believes before it has seen the bytes.
const maxGrow = 1 << 30

// newlines writes text with universal newlines.
type newlines struct {
	b  strings.Builder
	cr bool // the last byte was a CR, written as \n: an LF now is part of it
}

func (d *newlines) write(p []byte) {
	for len(p) > 0 {
		if d.cr && p[0] == '\n' {
			p = p[1:]
		}
		d.cr = false
		i := bytes.IndexByte(p, '\r')
		if i < 0 {
			d.b.Write(p)
			return
		}
		d.b.Write(p[:i])
		d.b.WriteByte('\n')
		d.cr = true
		p = p[i+1:]
	}
}

// Valid is raw with U+FFFD for what is not valid UTF-8: one for each byte that
// can begin nothing, and one for each sequence that breaks off, as Unicode
// advises (its chapter 3.9, "maximal subpart") and Python does. Valid bytes are
// returned as they are.
func Valid(raw []byte) []byte {
	if utf8.Valid(raw) {
		return raw
	}
	valid := make([]byte, 0, len(raw)+len(raw)/8)
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r != utf8.RuneError || size > 1 {
			valid = append(valid, raw[:size]...)
			raw = raw[size:]
			continue
		}
		valid = utf8.AppendRune(valid, utf8.RuneError)
		raw = raw[broken(raw):]
	}
	return valid
}

// broken is how many bytes at the start of p, which are no character, are the
// beginning of one: 1 at least.
func broken(p []byte) int {
	low, high := byte(0x80), byte(0xbf) // what the second byte may be
	need := 0                           // bytes after the first
	switch c := p[0]; {
	case 0xc2 <= c && c <= 0xdf:
		need = 1
	case 0xe0 <= c && c <= 0xef:
		need = 2
	case 0xf0 <= c && c <= 0xf4:
		need = 3
	}
	switch p[0] {
	case 0xe0:
		low = 0xa0
	case 0xed:
		high = 0x9f
	case 0xf0:
		low = 0x90
	case 0xf4:
		high = 0x8f
	}
	n := 1
	for n <= need && n < len(p) && low <= p[n] && p[n] <= high {
		n++
		low, high = 0x80, 0xbf
	}
	return n
}
