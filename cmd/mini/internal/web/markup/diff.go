package markup

import (
	"strings"

	"github.com/minibench/mini/internal/difflines"
)

// Diff renders a patch with a class for each line: "file" for names and modes of files, "hunk",
// "add" and "del". Text that is no patch has none. A CR before a line end is shown, since it is
// part of the file. The classes follow the letters of the lines where the counts of a hunk are
// wrong.
func Diff(patch string, o Options) Block {
	w := newWriter(o)
	var state difflines.Scanner
	w.parts(patch, o.limit(), func(part string) {
		for len(part) > 0 {
			text, rest, isComplete := strings.Cut(part, "\n")
			end := ""
			if isComplete {
				end = "\n"
			}
			w.line(text, nil, diffTags[state.Line(text, rest)], end)
			part = rest
		}
	})
	return w.block()
}

var diffTags = map[difflines.Class]string{
	difflines.File: spanTag("file"), difflines.Hunk: spanTag("hunk"), difflines.Add: spanTag("add"), difflines.Del: spanTag("del"),
}
