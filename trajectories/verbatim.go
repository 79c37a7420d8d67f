package trajectories

import (
	"math/bits"
	"unicode/utf8"
)

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
