package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
)

// minTextWidth is the minimum width, in cells, for wrapping a text beside a
// name.
const minTextWidth = 24

// margin precedes lines other than the end of an attempt. minNameWidth is the
// minimum width of an instance name on a narrow terminal, in cells.
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
	if width := p.room(); width > 0 {
		name = table.TruncateMiddle(text.Printable(name), max(minNameWidth, width/3))
	}
	return margin + name + "  "
}

// printf prints a line about an instance.
func (p *PlainPrinter) printf(e runner.Event, format string, args ...any) {
	p.write(p.prefix(e), 0, format, args...)
}

// printShort is printf with truncation instead of wrapping.
func (p *PlainPrinter) printShort(e runner.Event, format string, args ...any) {
	line := text.Printable(p.prefix(e) + fmt.Sprintf(format, args...))
	if width := p.room(); width > 0 {
		line = ansi.TruncateWc(line, width, "…")
	}
	_, _ = io.WriteString(p.w, line+"\n")
}

// pull prints the progress of an image pull, which is at the end of the event's
// text.
func (p *PlainPrinter) pull(e runner.Event) {
	text, width := text.Printable("pull: "+e.Text), p.room()
	if i := strings.LastIndex(text, ": "); width > 0 {
		text = table.TruncateMiddle(text[:i], width-len(margin)-ansi.StringWidthWc(text[i:])) + text[i:]
	}
	p.printShort(e, "%s", text)
}

// write writes a text after a prefix. The texts are untrusted: control
// characters are replaced. If a line is too long, it continues below the text,
// indented by hang cells.
func (p *PlainPrinter) write(lead string, hang int, format string, args ...any) {
	lead, text := text.Printable(lead), text.Printable(fmt.Sprintf(format, args...))
	width := p.room()
	if width > 0 && ansi.StringWidthWc(lead+text) > width {
		indent := ansi.StringWidthWc(lead) + hang
		if width-indent < minTextWidth {
			indent = min(8, width/4)
		}
		text = wrapFrom(text, ansi.StringWidthWc(lead), indent, width)
	}
	_, _ = io.WriteString(p.w, lead+text+"\n")
}

func (p *PlainPrinter) room() int {
	if p.Width == nil {
		return 0
	}
	return p.Width()
}

// wrapFrom wraps a text that starts at column start between words, and keeps
// spaces within lines. It does not break long words, which may be paths to
// copy.
func wrapFrom(text string, at, indent, width int) string {
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
		if started && at+spaces+size > width {
			s.WriteString("\n")
			at, spaces = 0, indent
		}
		s.WriteString(strings.Repeat(" ", spaces) + word)
		at += spaces + size
		spaces, started = 0, true
	}
	return s.String()
}

func secondsText(s float64) string {
	if s >= 60 {
		return time.Duration(s * float64(time.Second)).Round(time.Second).String()
	}
	return fmt.Sprintf("%.1fs", s)
}
