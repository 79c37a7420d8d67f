package markup

import (
	"strings"

	"github.com/minibench/mini/internal/markdown"
)

// Prose renders a reply. Blocks between fences (``` or ~~~) are in <pre>, code between backquotes
// of a line in <code>; the fences and backquotes stay. All other marks of Markdown, such as links
// and images, are text.
func Prose(s string, o Options) Block {
	w := newWriter(o)
	var scanner markdown.Scanner
	w.parts(s, o.limit(), func(part string) {
		for line := range strings.Lines(part) {
			line, end := cutEnd(line)
			switch scanner.Line(line) {
			case markdown.Fence:
				w.line(line, fenceStyle, preTag, end)
			case markdown.Code:
				w.line(line, nil, preTag, end)
			default:
				w.line(line, inlineCode(line[:min(len(line), MaxLine)]), "", end)
			}
		}
	})
	return w.block()
}

var fenceStyle = []style{{0, spanTag("fence")}}

// inlineCode returns the styles of a line with code.
func inlineCode(line string) (styles []style) {
	for _, span := range markdown.CodeSpans(line) {
		styles = append(styles, style{span.Start, codeTag}, style{span.End, ""})
	}
	return styles
}
