package markup

import (
	"html/template"
	"strings"
)

// Block is a rendered text. The lines are complete fragments, so that a block can be split after
// each of them.
type Block struct {
	html    string
	lines   []line
	omitted int
	hits    int
}

// line is a rendered line.
type line struct {
	end        int    // offset in the HTML of the block
	isComplete bool   // has a line end
	wrap       string // tag around the line and its neighbours with the same tag; "" for none
}

// HTML returns the whole block.
func (b Block) HTML() template.HTML { return b.part(0, len(b.lines)) }

// Lines returns the number of lines.
func (b Block) Lines() int { return len(b.lines) }

// Omitted returns the number of bytes of the text that the block does not show.
func (b Block) Omitted() int { return b.omitted }

// Hits returns the number of hits that are marked.
func (b Block) Hits() int { return b.hits }

// Fold is a block in three parts. If Lines is 0, Head is the whole block.
type Fold struct {
	Head, Middle, Tail template.HTML
	Lines              int // of the middle
}

// Fold splits a block of more than 2*n lines into the first n lines, the middle and the last n
// lines.
func (b Block) Fold(n int) Fold {
	last := len(b.lines) - n
	if n < 0 || last <= n {
		return Fold{Head: b.HTML()}
	}
	return Fold{Head: b.part(0, n), Middle: b.part(n, last), Tail: b.part(last, len(b.lines)), Lines: last - n}
}

// part returns the lines from one number up to another.
func (b Block) part(from, to int) template.HTML {
	start := 0
	if from > 0 {
		start = b.lines[from-1].end
	}
	var out strings.Builder
	wrap := ""
	for _, l := range b.lines[from:to] {
		if l.wrap != wrap {
			out.WriteString(closing(wrap))
			out.WriteString(l.wrap)
			if l.wrap == preTag {
				out.WriteByte('\n') // which the parser of HTML drops there
			}
			wrap = l.wrap
		}
		out.WriteString(b.html[start:l.end])
		start = l.end
	}
	out.WriteString(closing(wrap))
	return template.HTML(out.String()) //nolint:gosec // G203: writer.put escapes all text
}

const (
	preTag  = "<pre>"
	codeTag = "<code>"
)

// closing returns the end tag of a tag.
func closing(tag string) string {
	switch tag {
	case "":
		return ""
	case preTag:
		return "</pre>"
	case codeTag:
		return "</code>"
	}
	return "</span>"
}
