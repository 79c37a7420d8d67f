package logs

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// ErrNotUTF8 reports a log that is not valid UTF-8.
var ErrNotUTF8 = errors.New("the log is not valid UTF-8")

// Decode converts a log to the form that the parsers expect: with universal newlines,
// so that CRLF and a lone CR become \n. It returns ErrNotUTF8 for invalid UTF-8. It
// copies the log; use DecodeReader for large logs.
func Decode(raw []byte) (string, error) { return DecodeReader(bytes.NewReader(raw), int64(len(raw))) }

// DecodeLossy decodes a log like Decode, but replaces invalid UTF-8 with U+FFFD as
// ToValidUTF8 does.
func DecodeLossy(raw []byte) string {
	var d newlineConverter
	d.b.Grow(len(raw))
	d.write(ToValidUTF8(raw))
	return d.b.String()
}

// DecodeReader decodes the log in r like Decode, with less memory. size is the expected
// number of bytes, or 0 if it is unknown. DecodeReader returns the error of r, or
// ErrNotUTF8.
func DecodeReader(r io.Reader, size int64) (string, error) {
	const block = 64 << 10
	var d newlineConverter
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

// maxGrow is the maximum memory that DecodeReader allocates before it reads, in bytes.
const maxGrow = 1 << 30

// newlineConverter converts text to universal newlines.
type newlineConverter struct {
	b       strings.Builder
	afterCR bool // whether the last byte was a CR, so that write skips a following LF
}

func (d *newlineConverter) write(p []byte) {
	for len(p) > 0 {
		if d.afterCR && p[0] == '\n' {
			p = p[1:]
		}
		d.afterCR = false
		i := bytes.IndexByte(p, '\r')
		if i < 0 {
			d.b.Write(p)
			return
		}
		d.b.Write(p[:i])
		d.b.WriteByte('\n')
		d.afterCR = true
		p = p[i+1:]
	}
}

// ToValidUTF8 replaces each invalid byte and each truncated sequence in raw with one
// U+FFFD, as Unicode recommends (chapter 3.9, "maximal subpart") and Python does. It
// returns valid input unchanged.
func ToValidUTF8(raw []byte) []byte {
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
		raw = raw[invalidPrefix(raw):]
	}
	return valid
}

// invalidPrefix returns the length of the invalid or truncated sequence at the
// start of p, at least 1.
func invalidPrefix(p []byte) int {
	low, high := byte(0x80), byte(0xbf) // range of the second byte
	following := 0                      // expected number of bytes after the first
	switch c := p[0]; {
	case 0xc2 <= c && c <= 0xdf:
		following = 1
	case 0xe0 <= c && c <= 0xef:
		following = 2
	case 0xf0 <= c && c <= 0xf4:
		following = 3
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
	for n <= following && n < len(p) && low <= p[n] && p[n] <= high {
		n++
		low, high = 0x80, 0xbf
	}
	return n
}
