package trajectories

import (
	"bytes"
	"encoding/hex"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// eachMember calls f with the members of an object that has no white space
// between them, and no escapes in their names, as a Journal writes it. It looks
// at values only to find their ends. False means that the object, or f, is
// otherwise.
func eachMember(data []byte, f func(key, value []byte) bool) bool {
	if len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' {
		return false
	}
	if len(data) == 2 {
		return true
	}
	for at := 1; ; at++ {
		end := stringEnd(data, at)
		if end < 0 || end+1 >= len(data) || data[end] != ':' {
			return false
		}
		key, start := data[at+1:end-1], end+1
		if at = valueEnd(data, start); at < 0 || at >= len(data) || bytes.IndexByte(key, '\\') >= 0 || !f(key, data[start:at]) {
			return false
		}
		if at == len(data)-1 {
			return true
		}
		if data[at] != ',' {
			return false
		}
	}
}

// eachElement is eachMember for the elements of a list.
func eachElement(data []byte, f func(value []byte) bool) bool {
	if len(data) < 2 || data[0] != '[' || data[len(data)-1] != ']' {
		return false
	}
	if len(data) == 2 {
		return true
	}
	for at := 1; ; at++ {
		start := at
		if at = valueEnd(data, start); at < 0 || at >= len(data) || !f(data[start:at]) {
			return false
		}
		if at == len(data)-1 {
			return true
		}
		if data[at] != ',' {
			return false
		}
	}
}

// list reads a list; false leaves it to encoding/json.
func list[T any](data []byte, read func([]byte) (T, bool)) ([]T, bool) {
	all := []T{}
	ok := eachElement(data, func(value []byte) bool {
		v, ok := read(value)
		all = append(all, v)
		return ok
	})
	return all, ok
}

// stringEnd is where the string ends that begins here; -1 where none does.
func stringEnd(data []byte, at int) int {
	if at >= len(data) || data[at] != '"' {
		return -1
	}
	for at++; at < len(data); {
		n := bytes.IndexByte(data[at:], '"')
		if n < 0 {
			return -1
		}
		at += n + 1
		slashes := 0
		for data[at-2-slashes] == '\\' { // it ends at the quote that begins the string
			slashes++
		}
		if slashes%2 == 0 {
			return at
		}
	}
	return -1
}

// valueEnd is where the value ends that begins here; -1 where none does.
func valueEnd(data []byte, at int) int {
	depth := 0
	for at < len(data) {
		switch data[at] {
		case '"':
			if at = stringEnd(data, at); at < 0 {
				return -1
			}
			if depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at // of a number or a word
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',':
			if depth == 0 {
				return at
			}
		case ' ', '\t', '\n', '\r':
			if depth == 0 {
				return -1
			}
		}
		at++
	}
	return -1
}

// unescaped are what the short escapes stand for.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// Verbatim is how many of the first bytes of a text stand in a string of JSON as
// they are, whichever way it is read: ASCII without control characters, quotes and
// backslashes. It looks at eight at a time, since gigabytes go by here: a byte of
// wrong has its highest bit set where that of the text is none of those, or stands
// after such a one.
func Verbatim[T ~string | ~[]byte](text T) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(text); n += 8 {
		b := text[n : n+8]
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		quote, backslash := x^(ones*'"'), x^(ones*'\\')
		wrong := (x | (x - ones*' ') | (quote - ones) | (backslash - ones)) & highs
		if wrong != 0 {
			return n + bits.TrailingZeros64(wrong)/8
		}
	}
	for n < len(text) && text[n] >= ' ' && text[n] < utf8.RuneSelf && text[n] != '"' && text[n] != '\\' {
		n++
	}
	return n
}

// quoted reads a string that eachMember or eachElement has found the end of;
// false leaves it to encoding/json. It goes over the bytes once, and has the
// memory for them at once: most of an export's time goes by here.
func quoted[T ~string](value []byte) (T, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	value = value[1 : len(value)-1]
	var plain strings.Builder
	done := 0 // up to where it is in plain
	for i := Verbatim(value); i < len(value); i += Verbatim(value[i:]) {
		switch c := value[i]; {
		case c == '\\':
			if done == 0 {
				plain.Grow(len(value))
			}
			plain.Write(value[done:i])
			r, n := escapedRune(value[i:])
			if n == 0 {
				return "", false
			}
			plain.WriteRune(r)
			i += n
			done = i
		case c < utf8.RuneSelf: // a control character, which JSON forbids
			return "", false
		default:
			r, n := utf8.DecodeRune(value[i:])
			if r == utf8.RuneError && n == 1 {
				return "", false
			}
			i += n
		}
	}
	if done == 0 {
		return T(value), true
	}
	plain.Write(value[done:])
	return T(plain.String()), true
}

// escapedRune is what the escape stands for that begins here, and how long it
// is; 0 where it is none.
func escapedRune(s []byte) (rune, int) {
	if c := unescaped[s[1]]; c != 0 { // a string does not end in a backslash
		return rune(c), 2
	}
	r := byNumber(s)
	switch {
	case r < 0:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	if both := utf16.DecodeRune(r, byNumber(s[6:])); both != utf8.RuneError {
		return both, 12
	}
	return utf8.RuneError, 6 // half a pair
}

// byNumber reads four digits after the backslash and the u; -1 where they are
// not there.
func byNumber(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	var code [2]byte
	if _, err := hex.Decode(code[:], s[2:6]); err != nil {
		return -1
	}
	return rune(code[0])<<8 | rune(code[1])
}

// whole reads a whole number, as it is in JSON: without a sign or zeros before
// it.
func whole[T int | int64](data []byte) (T, bool) {
	if len(data) == 0 || len(data) > 15 || len(data) > 1 && data[0] == '0' {
		return 0, false
	}
	n := T(0)
	for _, c := range data {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + T(c-'0')
	}
	return n, true
}

// number reads what has digits before a point and after it, and no exponent.
func number[T ~float64](data []byte) (T, bool) {
	before, after, point := bytes.Cut(data, []byte("."))
	if _, ok := whole[int64](before); !ok || point && len(bytes.Trim(after, "0123456789")) > 0 || point && len(after) == 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(data), 64)
	return T(f), err == nil
}
