// Package difflines classifies the lines of unified diffs, such as those of git, in text that may
// contain other lines too. The classes follow the letters of the lines where the counts of a hunk
// are wrong.
//
//	var s difflines.Scanner
//	class := s.Line(line, rest)
package difflines

import (
	"strconv"
	"strings"
)

// Class is the class of a line; empty for lines of context and for text that is no diff.
type Class string

// The classes.
const (
	File Class = "file" // names and modes of files
	Hunk Class = "hunk" // the header of a hunk
	Add  Class = "add"
	Del  Class = "del"
)

// Scanner says what lines are. The zero value is at the start of a text.
type Scanner struct {
	inHeader bool // after "diff --git"
	inHunk   bool
	columns  int // of signs before a line: 1, or the number of parents of a merge
	old, new int // lines that the hunk still has, if it has one column
}

// Line returns the class of the next line. next are the lines after it, as far as they are known.
func (d *Scanner) Line(line, next string) Class {
	if n := hunkColumns(line); n > 0 {
		*d = Scanner{inHunk: true, columns: n}
		if n == 1 {
			d.old, d.new = hunkCount(line, " -"), hunkCount(line, " +")
		}
		return Hunk
	}
	switch {
	case strings.HasPrefix(line, "diff --"):
		*d = Scanner{inHeader: true}
		return File
	case !d.isComplete():
	case strings.HasPrefix(line, "--- ") && strings.HasPrefix(next, "+++ "):
		*d = Scanner{inHeader: true}
		return File
	case line == "-- ": // the signature of git format-patch
		d.inHunk = false
	}
	switch {
	case d.inHeader:
		return File
	case !d.inHunk:
		return ""
	case strings.Trim(line, "\r") == "":
		d.used(1, 1)
		return ""
	}
	signs := line[:min(d.columns, len(line))]
	switch {
	case strings.HasPrefix(line, `\ `):
	case strings.Trim(signs, " +-") != "":
		d.inHunk = false
	case strings.Contains(signs, "+"):
		d.used(0, 1)
		return Add
	case strings.Contains(signs, "-"):
		d.used(1, 0)
		return Del
	default:
		d.used(1, 1)
	}
	return ""
}

// isComplete reports whether names of files may follow without a line "diff --git". A deleted
// comment of SQL looks the same, so the counts of the hunk have to be used up.
func (d *Scanner) isComplete() bool {
	return !d.inHeader && (!d.inHunk || d.columns == 1 && d.old+d.new == 0)
}

func (d *Scanner) used(old, new int) { d.old, d.new = max(d.old-old, 0), max(d.new-new, 0) }

// hunkColumns returns the number of columns of signs that the header of a hunk announces, or 0
// if the line is none.
func hunkColumns(line string) int {
	const maxParents = 16
	n := len(line) - len(strings.TrimLeft(line, "@"))
	if n < 2 || n > maxParents+1 || !strings.HasPrefix(line[n:], " -") {
		return 0
	}
	return n - 1
}

// hunkCount returns the number of lines of one side of "@@ -1,2 +3,4 @@", 1 where it is left out.
func hunkCount(line, side string) int {
	_, after, _ := strings.Cut(line, side)
	field, _, _ := strings.Cut(after, " ")
	_, digits, found := strings.Cut(field, ",")
	if !found {
		return 1
	}
	n, _ := strconv.ParseUint(digits, 10, 31) // a number that is none is 0
	return int(n)
}
