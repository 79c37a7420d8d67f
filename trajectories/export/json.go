package export

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// row is one line of JSON as it grows. Rows are written by hand, for they are
// mostly text, and there are gigabytes of it.
type row struct {
	data []byte
	// first says that an object or list was just opened.
	first bool
}

func (r *row) open(b byte) {
	r.data = append(r.data, b)
	r.first = true
}

func (r *row) close(b byte) {
	r.data = append(r.data, b)
	r.first = false
}

func (r *row) comma() {
	if !r.first {
		r.data = append(r.data, ',')
	}
	r.first = false
}

// key begins a member of an object; its value comes next.
func (r *row) key(name string) {
	r.comma()
	r.data = appendString(r.data, name)
	r.data = append(r.data, ':')
}

func (r *row) text(name, value string) {
	r.key(name)
	r.data = appendString(r.data, value)
}

func (r *row) int(name string, value int64) {
	r.key(name)
	r.data = strconv.AppendInt(r.data, value, 10)
}

func (r *row) bool(name string, value bool) {
	r.key(name)
	r.data = strconv.AppendBool(r.data, value)
}

// raw writes a value that is JSON already.
func (r *row) raw(name string, value []byte) {
	r.key(name)
	r.data = append(r.data, value...)
}

// textOrNull writes null for an empty text: it is not known.
func (r *row) textOrNull(name, value string) {
	if value == "" {
		r.raw(name, []byte("null"))
		return
	}
	r.text(name, value)
}

// intOrNull writes null for 0: the number is not known.
func (r *row) intOrNull(name string, value int64) {
	if value == 0 {
		r.raw(name, []byte("null"))
		return
	}
	r.int(name, value)
}

// image writes a picture as a part of a message.
func (r *row) image(img model.Image) {
	r.comma()
	r.data = append(r.data, `{"type":"image_url","image_url":{"url":"data:`...)
	quoted := appendString(nil, img.MediaType)
	r.data = append(r.data, quoted[1:len(quoted)-1]...)
	r.data = append(r.data, ";base64,"...)
	r.data = base64.StdEncoding.AppendEncode(r.data, img.Data)
	r.data = append(r.data, `"}}`...)
}

const hexDigits = "0123456789abcdef"

// appendString writes what encoding/json writes with its escapes for HTML off.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := trajectories.Verbatim(s); i < len(s); i += trajectories.Verbatim(s[i:]) {
		b := s[i]
		if b < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, b)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\ufffd`...)
			start = i + size
		case r == '\u2028' || r == '\u2029': // what JavaScript takes for the end of a line
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\u202`...)
			dst = append(dst, hexDigits[r&0xf])
			start = i + size
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xf])
}

// compact is JSON of others on one line, as it stands there but for white
// space; false where it is none.
func compact(raw []byte) ([]byte, bool) {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// object is the arguments of a call, as an object on one line.
func object(arguments string) ([]byte, bool) {
	b, ok := compact([]byte(arguments))
	return b, ok && len(b) > 0 && b[0] == '{'
}
