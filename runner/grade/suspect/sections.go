package suspect

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/minibench/mini/internal/lazyregexp"
)

// section is the part of a patch about one file. What stands before the first
// file is a section without names.
type section struct {
	text  []byte   // part of the patch, not a copy
	names []string // every name that git or patch could take, as paths in the repository
}

// sections splits a patch. Together they are the patch, byte for byte.
//
// Patches of three kinds are known, since the tools that apply them know them:
// those of git, plain unified ones, and context diffs. A part of one kind may
// hide behind one of another, so that all are looked for everywhere but within
// the lines that a hunk says it has.
func sections(patch []byte) []section {
	var all []section
	var s splitter
	start := 0
	cut := func(at int) {
		if at > start {
			all = append(all, section{text: patch[start:at], names: s.names})
		}
		start = at
		s.names = nil
	}
	for at := 0; at < len(patch); {
		line, next := lineAt(patch, at)
		following, _ := lineAt(patch, next)
		if s.begins(line, following) {
			cut(at)
		}
		s.take(line, following)
		at = next
	}
	cut(len(patch))
	return all
}

// lineAt is the line at an offset, without its end, and where the next begins.
func lineAt(text []byte, at int) (line []byte, next int) {
	rest := text[at:]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		return bytes.TrimSuffix(rest[:i], []byte("\r")), at + i + 1
	}
	return bytes.TrimSuffix(rest, []byte("\r")), len(text)
}

// splitter knows where in a patch it is.
type splitter struct {
	hunk   hunk
	opened bool // a header announced a file, whose names are still to come
	names  []string
}

// begins tells whether a file begins with this line.
func (s *splitter) begins(line, next []byte) bool {
	if s.hunk.has(line) {
		return false
	}
	line, next = outdent(line), outdent(next)
	return announces(line) || isPair(line, next) && !s.opened
}

// take notes what a line says.
func (s *splitter) take(line, next []byte) {
	if s.hunk.take(line) {
		return
	}
	line, next = outdent(line), outdent(next)
	switch {
	case announces(line):
		s.opened = true
		s.add(announced(line))
	case isPair(line, next):
		s.opened = false
		s.add(fileName(line[4:]))
		s.add(fileName(next[4:]))
	default:
		s.add(extended(line))
	}
}

func (s *splitter) add(names []string) {
	for _, name := range names {
		if !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
	}
}

// outdent drops what the program patch lets stand before every line of a patch.
func outdent(line []byte) []byte { return bytes.TrimLeft(line, " \tX") }

// announces tells the lines that come before the names of a file.
func announces(line []byte) bool {
	return bytes.HasPrefix(line, []byte("diff -")) || bytes.HasPrefix(line, []byte("Index: "))
}

var contextRange = lazyregexp.New(`^\*\*\* \d+(,\d+)? \*\*\*\*$`)

// isPair tells the two lines with the old name and the new one.
func isPair(line, next []byte) bool {
	starts := func(a, b string) bool {
		return bytes.HasPrefix(line, []byte(a)) && bytes.HasPrefix(next, []byte(b))
	}
	return starts("--- ", "+++ ") || starts("*** ", "--- ") && !contextRange.Match(line)
}

// hunk counts the lines that a hunk still has on its two sides.
type hunk struct{ old, now int }

var hunkHeader = lazyregexp.New(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// has tells whether the line is one of the hunk's.
func (h *hunk) has(line []byte) bool {
	return (h.old > 0 || h.now > 0) && (len(line) == 0 || bytes.IndexByte([]byte(" +-\\"), line[0]) >= 0)
}

// take counts a line of the hunk, or the header of the next one. Another line
// ends the hunk, whatever it said of its length.
func (h *hunk) take(line []byte) bool {
	if !h.has(line) {
		*h = hunk{}
		m := hunkHeader.FindSubmatch(line)
		if m == nil {
			return false
		}
		*h = hunk{old: length(m[1]), now: length(m[2])}
		return true
	}
	switch {
	case len(line) == 0 || line[0] == ' ':
		h.old, h.now = h.old-1, h.now-1
	case line[0] == '+':
		h.now--
	case line[0] == '-':
		h.old--
	}
	return true
}

// length is what a hunk's header says, one where it says nothing. A number
// that is too large is as good as any other: no patch has so many lines.
func length(digits []byte) int {
	if len(digits) == 0 {
		return 1
	}
	n, _ := strconv.Atoi(string(digits))
	return n
}

// hunkStart is the sign with which changed tells that a hunk begins: what was
// seen before is not what stands before it in the file.
const hunkStart = '@'

// changed calls f with each line of the section's hunks, and its first byte
// apart, until f returns false.
func (s section) changed(f func(sign byte, line []byte) bool) {
	var h hunk
	for at := 0; at < len(s.text); {
		line, next := lineAt(s.text, at)
		at = next
		body := h.has(line)
		begins := h.take(line) && !body
		if !begins && (!body || len(line) == 0) {
			continue
		}
		sign, rest := byte(hunkStart), []byte(nil)
		if body {
			sign, rest = line[0], line[1:]
		}
		if !f(sign, rest) {
			return
		}
	}
}
