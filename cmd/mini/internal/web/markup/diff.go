package markup

import (
	"strconv"
	"strings"
)

// Diff renders a patch with a class for each line: "file" for names and modes of files, "hunk",
// "add" and "del". Text that is no patch has none. A CR before a line end is shown, since it is
// part of the file. The classes follow the letters of the lines where the counts of a hunk are
// wrong.
func Diff(patch string, o Options) Block {
	w := newWriter(o)
	var state diffState
	w.parts(patch, o.limit(), func(part string) {
		for len(part) > 0 {
			text, rest, isComplete := strings.Cut(part, "\n")
			end := ""
			if isComplete {
				end = "\n"
			}
			w.line(text, nil, diffTags[state.class(text, rest)], end)
			part = rest
		}
	})
	return w.block()
}

var diffTags = map[string]string{
	"file": spanTag("file"), "hunk": spanTag("hunk"), "add": spanTag("add"), "del": spanTag("del"),
}

// diffState is what the lines before say about the next one.
type diffState struct {
	inHeader bool // after "diff --git"
	inHunk   bool
	columns  int // of signs before a line: 1, or the number of parents of a merge
	old, new int // lines that the hunk still has, if it has one column
}

// class returns the class of a line; next are the lines after it.
func (d *diffState) class(line, next string) string {
	if n := hunkColumns(line); n > 0 {
		*d = diffState{inHunk: true, columns: n}
		if n == 1 {
			d.old, d.new = hunkCount(line, " -"), hunkCount(line, " +")
		}
		return "hunk"
	}
	switch {
	case strings.HasPrefix(line, "diff --"):
		*d = diffState{inHeader: true}
		return "file"
	case !d.isComplete():
	case strings.HasPrefix(line, "--- ") && strings.HasPrefix(next, "+++ "):
		*d = diffState{inHeader: true}
		return "file"
	case line == "-- ": // the signature of git format-patch
		d.inHunk = false
	}
	switch {
	case d.inHeader:
		return "file"
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
		return "add"
	case strings.Contains(signs, "-"):
		d.used(1, 0)
		return "del"
	default:
		d.used(1, 1)
	}
	return ""
}

// isComplete reports whether names of files may follow without a line "diff --git". A deleted
// comment of SQL looks the same, so the counts of the hunk have to be used up.
func (d *diffState) isComplete() bool {
	return !d.inHeader && (!d.inHunk || d.columns == 1 && d.old+d.new == 0)
}

func (d *diffState) used(old, new int) { d.old, d.new = max(d.old-old, 0), max(d.new-new, 0) }

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
