package tampering

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/minibench/mini/internal/lazyregexp"
)

// section is the part of a patch that changes one file. Text before the first file
// forms a section without names.
type section struct {
	text  []byte   // subslice of the patch
	names []string // all possible names of the file for git or patch, as paths in the repository
}

// sections splits a patch into sections. The concatenated sections equal the patch.
//
// It recognizes the formats that git apply and patch accept: git patches, plain
// unified diffs and context diffs. A patch can mix formats to hide a file, so sections
// recognizes all formats everywhere except within the lines of a hunk.
func sections(patch []byte) []section {
	var all []section
	var s splitter
	start := 0
	endSection := func(end int) {
		if end > start {
			all = append(all, section{text: patch[start:end], names: s.names})
		}
		start = end
		s.names = nil
	}
	for offset := 0; offset < len(patch); {
		line, next := lineAt(patch, offset)
		following, _ := lineAt(patch, next)
		if s.isFileStart(line, following) {
			endSection(offset)
		}
		s.addLine(line, following)
		offset = next
	}
	endSection(len(patch))
	return all
}

// lineAt returns the line that starts at an offset, without its line ending, and the
// offset of the next line.
func lineAt(text []byte, offset int) (line []byte, next int) {
	rest := text[offset:]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		return bytes.TrimSuffix(rest[:i], []byte("\r")), offset + i + 1
	}
	return bytes.TrimSuffix(rest, []byte("\r")), len(text)
}

// splitter is the parser state of sections.
type splitter struct {
	hunk        hunk
	afterHeader bool // whether a header was read, but not yet the lines with the file names
	names       []string
}

// isFileStart reports whether a section begins with line. next is the line after it.
func (s *splitter) isFileStart(line, next []byte) bool {
	if s.hunk.contains(line) {
		return false
	}
	line, next = outdent(line), outdent(next)
	return isHeader(line) || isNamePair(line, next) && !s.afterHeader
}

// addLine updates the state with a line.
func (s *splitter) addLine(line, next []byte) {
	if s.hunk.addLine(line) {
		return
	}
	line, next = outdent(line), outdent(next)
	switch {
	case isHeader(line):
		s.afterHeader = true
		s.addNames(headerNames(line))
	case isNamePair(line, next):
		s.afterHeader = false
		s.addNames(fileNames(line[4:]))
		s.addNames(fileNames(next[4:]))
	default:
		s.addNames(extendedNames(line))
	}
}

func (s *splitter) addNames(names []string) {
	for _, name := range names {
		if !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
	}
}

// outdent removes the indentation that the patch program accepts before every line.
func outdent(line []byte) []byte { return bytes.TrimLeft(line, " \tX") }

// isHeader reports whether a line is the header of a file's section.
func isHeader(line []byte) bool {
	return bytes.HasPrefix(line, []byte("diff -")) || bytes.HasPrefix(line, []byte("Index: "))
}

var contextRange = lazyregexp.New(`^\*\*\* \d+(,\d+)? \*\*\*\*$`)

// isNamePair reports whether two lines have the old and the new name of a file.
func isNamePair(line, next []byte) bool {
	starts := func(a, b string) bool {
		return bytes.HasPrefix(line, []byte(a)) && bytes.HasPrefix(next, []byte(b))
	}
	return starts("--- ", "+++ ") || starts("*** ", "--- ") && !contextRange.Match(line)
}

// hunk counts the remaining lines of a hunk in the old and the new file.
type hunk struct{ oldLines, newLines int }

var hunkHeader = lazyregexp.New(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// contains reports whether a line belongs to the hunk.
func (h *hunk) contains(line []byte) bool {
	return (h.oldLines > 0 || h.newLines > 0) && (len(line) == 0 || bytes.IndexByte([]byte(" +-\\"), line[0]) >= 0)
}

// addLine counts a line of the hunk or starts a hunk at a header, and returns true. Any
// other line ends the hunk, and addLine returns false.
func (h *hunk) addLine(line []byte) bool {
	if !h.contains(line) {
		*h = hunk{}
		m := hunkHeader.FindSubmatch(line)
		if m == nil {
			return false
		}
		*h = hunk{oldLines: hunkLength(m[1]), newLines: hunkLength(m[2])}
		return true
	}
	switch {
	case len(line) == 0 || line[0] == ' ':
		h.oldLines, h.newLines = h.oldLines-1, h.newLines-1
	case line[0] == '+':
		h.newLines--
	case line[0] == '-':
		h.oldLines--
	}
	return true
}

// hunkLength parses a length in a hunk header; the default is 1. It clamps an
// out-of-range number.
func hunkLength(digits []byte) int {
	if len(digits) == 0 {
		return 1
	}
	n, _ := strconv.Atoi(string(digits))
	return n
}

// hunkStart is the sign that eachLine passes at the start of a hunk. The lines before
// and after it are not adjacent in the file.
const hunkStart = '@'

// eachLine calls f with the sign and the text of each line of the section's
// hunks that is not empty, and with hunkStart at the header of each hunk, until
// f returns false.
func (s section) eachLine(f func(sign byte, line []byte) bool) {
	var h hunk
	for offset := 0; offset < len(s.text); {
		line, next := lineAt(s.text, offset)
		offset = next
		inHunk := h.contains(line)
		startsHunk := h.addLine(line) && !inHunk
		if !startsHunk && (!inHunk || len(line) == 0) {
			continue
		}
		sign, rest := byte(hunkStart), []byte(nil)
		if inHunk {
			sign, rest = line[0], line[1:]
		}
		if !f(sign, rest) {
			return
		}
	}
}

// binaryHeader matches the line before a binary change, and git's note that it left one out.
var binaryHeader = lazyregexp.New(`(?m)^(?:GIT binary patch|Binary files .* differ)\r?$`)

// isBinary reports whether the section changes a binary file.
func (s section) isBinary() bool { return binaryHeader.Match(s.text) }

// linkMode matches the mode of a symbolic link in a header of git.
var linkMode = lazyregexp.New(`(?m)^(?:new (?:file )?mode|index \S+) 120000\r?$`)

// isLink reports whether the section makes a symbolic link or changes one.
func (s section) isLink() bool { return linkMode.Match(s.text) }
