package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
)

// minTextWidth is the minimum width, in cells, for wrapping a text to the right of
// an instance name.
const minTextWidth = 24

// margin indents all lines except numbered ones. minNameWidth is the minimum width
// of an instance name on a narrow terminal, in cells.
const (
	margin       = "      "
	minNameWidth = 12
)

// prefix returns the text before a line about an instance. The instance name is
// truncated on a narrow terminal.
func (p *PlainPrinter) prefix(e runner.Event) string {
	if e.Instance == "" {
		return margin
	}
	name := p.name(e)
	if width := p.maxWidth(); width > 0 {
		name = table.TruncateMiddle(text.Printable(name), max(minNameWidth, width/3))
	}
	return margin + name + "  "
}

// printf prints a line about an instance.
func (p *PlainPrinter) printf(e runner.Event, format string, args ...any) {
	p.write(p.prefix(e), 0, format, args...)
}

// printShort prints a line about an instance and truncates it instead of wrapping.
func (p *PlainPrinter) printShort(e runner.Event, format string, args ...any) {
	line := text.Printable(p.prefix(e) + fmt.Sprintf(format, args...))
	if width := p.maxWidth(); width > 0 {
		line = ansi.TruncateWc(line, width, "…")
	}
	_, _ = io.WriteString(p.w, line+"\n")
}

// pull prints the progress of an image pull. It truncates the image name instead of
// the progress, which follows the last ": " of the event's text.
func (p *PlainPrinter) pull(e runner.Event) {
	text, width := text.Printable("pull: "+e.Text), p.maxWidth()
	if i := strings.LastIndex(text, ": "); width > 0 {
		text = table.TruncateMiddle(text[:i], width-len(margin)-ansi.StringWidthWc(text[i:])) + text[i:]
	}
	p.printShort(e, "%s", text)
}

// write writes a text after a prefix. It replaces control characters, because both
// are untrusted. A long text continues on the next line, below its start and
// indented by hang more cells.
func (p *PlainPrinter) write(prefix string, hang int, format string, args ...any) {
	prefix, text := text.Printable(prefix), text.Printable(fmt.Sprintf(format, args...))
	width := p.maxWidth()
	if width > 0 && ansi.StringWidthWc(prefix+text) > width {
		indent := ansi.StringWidthWc(prefix) + hang
		if width-indent < minTextWidth {
			indent = min(8, width/4)
		}
		text = wrapFrom(text, ansi.StringWidthWc(prefix), indent, width)
	}
	_, _ = io.WriteString(p.w, prefix+text+"\n")
}

func (p *PlainPrinter) maxWidth() int {
	if p.Width == nil {
		return 0
	}
	return p.Width()
}

// wrapFrom wraps a text between words. The first line starts at column, the others
// at indent. wrapFrom keeps spaces within lines and does not break long words, which
// may be paths that users copy.
func wrapFrom(text string, column, indent, width int) string {
	var s strings.Builder
	spaces := 0 // pending spaces before the word
	started := false
	for i, word := range strings.Split(text, " ") {
		if i > 0 {
			spaces++
		}
		if word == "" {
			continue
		}
		size := ansi.StringWidthWc(word)
		if started && column+spaces+size > width {
			s.WriteString("\n")
			column, spaces = 0, indent
		}
		s.WriteString(strings.Repeat(" ", spaces) + word)
		column += spaces + size
		spaces, started = 0, true
	}
	return s.String()
}
