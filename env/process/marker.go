package process

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// firstLine decides, while output arrives in pieces of any size, whether its
// first line equals a marker: leading white space and blank lines aside,
// trailing white space of the line ignored.
//
// White space and line ends are those of Python's str, because that is what
// the tools that defined the markers strip by.
type firstLine struct {
	markers []string
	seen    []byte // what has arrived, without leading white space
	begun   bool   // something other than white space has arrived
}

type verdict int

const (
	undecided verdict = iota
	plain
	marked
)

// newFirstLine returns nil when there is nothing to look for.
func newFirstLine(markers []string) *firstLine {
	f := &firstLine{}
	for _, m := range markers {
		if m = strings.TrimFunc(m, isSpace); m != "" {
			f.markers = append(f.markers, m)
		}
	}
	if len(f.markers) == 0 {
		return nil
	}
	return f
}

func (f *firstLine) add(p []byte) verdict {
	f.seen = append(f.seen, p...)
	if !f.begun {
		f.seen = trimLeft(f.seen)
		if f.begun = utf8.FullRune(f.seen); !f.begun {
			return undecided
		}
	}
	possible := false
	for _, m := range f.markers {
		if len(f.seen) <= len(m) {
			possible = possible || strings.HasPrefix(m, string(f.seen))
			continue
		}
		rest, ok := bytes.CutPrefix(f.seen, []byte(m))
		if !ok {
			continue
		}
		switch followed(rest) {
		case marked:
			return marked
		case undecided:
			possible = true
		case plain:
		}
	}
	if !possible {
		return plain
	}
	return undecided
}

// followed judges what comes after a marker: white space up to a line end
// keeps the line equal to it.
func followed(rest []byte) verdict {
	for len(rest) > 0 && utf8.FullRune(rest) {
		r, size := utf8.DecodeRune(rest)
		switch {
		case isLineEnd(r):
			return marked
		case !isSpace(r):
			return plain
		}
		rest = rest[size:]
	}
	return undecided
}

func trimLeft(p []byte) []byte {
	for len(p) > 0 && utf8.FullRune(p) {
		r, size := utf8.DecodeRune(p)
		if !isSpace(r) {
			break
		}
		p = p[size:]
	}
	return p
}

func isSpace(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r >= 0x1c && r <= ' ', r == 0x85, r == 0xa0, r == 0x1680,
		r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

func isLineEnd(r rune) bool {
	switch {
	case r >= '\n' && r <= '\r', r >= 0x1c && r <= 0x1e, r == 0x85, r == 0x2028, r == 0x2029:
		return true
	}
	return false
}
