package prompt

import (
	"bytes"
	"unicode/utf8"
)

// key is what a person did: a character, a paste, or something else.
type key struct {
	char  rune
	paste []byte
	name  name
}

type name int

const (
	none name = iota // a character
	paste
	enter
	altEnter
	escape
	tab
	interrupt // Ctrl-C
	end       // Ctrl-D
	suspend   // Ctrl-Z
	redraw    // Ctrl-L
	left
	right
	wordLeft
	wordRight
	home
	last // of the line
	up
	down
	backspace
	remove
	removeWord
	removeBefore
	removeAfter
	unknown
)

var controls = map[byte]name{
	'\r': enter, '\n': enter, '\t': tab, 0x7f: backspace, 0x08: backspace,
	0x01: home, 0x02: left, 0x03: interrupt, 0x04: end, 0x05: last, 0x06: right,
	0x0b: removeAfter, 0x0c: redraw, 0x0e: down, 0x10: up, 0x15: removeBefore, 0x17: removeWord, 0x1a: suspend,
}

var sequences = map[string]name{
	"\x1b[A": up, "\x1b[B": down, "\x1b[C": right, "\x1b[D": left, "\x1b[H": home, "\x1b[F": last,
	"\x1bOA": up, "\x1bOB": down, "\x1bOC": right, "\x1bOD": left, "\x1bOH": home, "\x1bOF": last,
	"\x1b[1~": home, "\x1b[7~": home, "\x1b[4~": last, "\x1b[8~": last, "\x1b[3~": remove,
	"\x1b[1;5C": wordRight, "\x1b[1;5D": wordLeft, "\x1b[1;3C": wordRight, "\x1b[1;3D": wordLeft,
	"\x1bf": wordRight, "\x1bb": wordLeft, "\x1b\x7f": removeWord, "\x1b\r": altEnter, "\x1b\n": altEnter,
	"\x1b[13;2u": altEnter, "\x1b[27;2;13~": altEnter, "\x1b[13;3u": altEnter,
}

var (
	pasteBegins = []byte("\x1b[200~")
	pasteEnds   = []byte("\x1b[201~")
)

// next is the first key of what was read, and how many bytes it takes; none
// where more has to be read.
func next(b []byte) (key, int) {
	switch {
	case len(b) == 0:
		return key{}, 0
	case b[0] == 0x1b:
		return sequence(b)
	case b[0] < ' ' || b[0] == 0x7f:
		if n, ok := controls[b[0]]; ok {
			return key{name: n}, 1
		}
		return key{name: unknown}, 1
	case !utf8.FullRune(b):
		return key{}, 0
	}
	r, size := utf8.DecodeRune(b)
	return key{char: r}, size
}

// maxSequence bounds a sequence that is none.
const maxSequence = 32

func sequence(b []byte) (key, int) {
	if len(b) == 1 {
		return key{}, 0
	}
	if bytes.HasPrefix(b, pasteBegins) {
		return pasted(b)
	}
	size := 2
	switch b[1] {
	case 0x1b:
		return key{name: escape}, 1
	case '[':
		for size < len(b) && b[size] >= ' ' && b[size] < 0x40 && size < maxSequence {
			size++
		}
		size++
	case 'O':
		size = 3
	default:
		if !utf8.FullRune(b[1:]) {
			return key{}, 0
		}
		_, n := utf8.DecodeRune(b[1:])
		size = 1 + n
	}
	if size > len(b) {
		return key{}, 0
	}
	if n, ok := sequences[string(b[:size])]; ok {
		return key{name: n}, size
	}
	return key{name: unknown}, size
}

func pasted(b []byte) (key, int) {
	at := bytes.Index(b, pasteEnds)
	switch {
	case at >= 0:
		return key{name: paste, paste: bytes.Clone(b[len(pasteBegins):at])}, at + len(pasteEnds)
	case len(b) > MaxInput+len(pasteBegins):
		return key{name: paste, paste: bytes.Clone(b[len(pasteBegins):])}, len(b)
	}
	return key{}, 0
}
