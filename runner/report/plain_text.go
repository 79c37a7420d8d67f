package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/runner"
)

// leastText is the room, in cells, that a text needs beside a name to be
// continued there.
const leastText = 24

// margin sets apart what is not the end of an attempt; leastName is the room
// that the name of an instance has on a narrow terminal, in cells.
const (
	margin    = "      "
	leastName = 12
)

// lead is what stands before a text about an instance, whose name gives way on
// a narrow terminal.
func (p *Plain) lead(e runner.Event) string {
	if e.Instance == "" {
		return margin
	}
	name := p.name(e)
	if width := p.room(); width > 0 {
		name = Middle(Printable(name), max(leastName, width/3))
	}
	return margin + name + "  "
}

// about says something of an instance.
func (p *Plain) about(e runner.Event, format string, args ...any) {
	p.write(p.lead(e), 0, format, args...)
}

// short is about for what is not worth a second line.
func (p *Plain) short(e runner.Event, format string, args ...any) {
	line := Printable(p.lead(e) + fmt.Sprintf(format, args...))
	if width := p.room(); width > 0 {
		line = ansi.TruncateWc(line, width, "…")
	}
	_, _ = io.WriteString(p.w, line+"\n")
}

// pull says how far a pull has come, which stands at the end of its text.
func (p *Plain) pull(e runner.Event) {
	text, width := Printable("pull: "+e.Text), p.room()
	if i := strings.LastIndex(text, ": "); width > 0 {
		text = Middle(text[:i], width-len(margin)-ansi.StringWidthWc(text[i:])) + text[i:]
	}
	p.short(e, "%s", text)
}

// write writes a text after its lead. Names, commands and errors come from
// strangers: what could move a terminal's cursor is shown as a sign of its own.
// Where a line has no room, the next begins beneath the text and so many cells
// to the right.
func (p *Plain) write(lead string, hang int, format string, args ...any) {
	lead, text := Printable(lead), Printable(fmt.Sprintf(format, args...))
	width := p.room()
	if width > 0 && ansi.StringWidthWc(lead+text) > width {
		indent := ansi.StringWidthWc(lead) + hang
		if width-indent < leastText {
			indent = min(8, width/4)
		}
		text = fold(text, ansi.StringWidthWc(lead), indent, width)
	}
	_, _ = io.WriteString(p.w, lead+text+"\n")
}

func (p *Plain) room() int {
	if p.Width == nil {
		return 0
	}
	return p.Width()
}

// fold breaks a text that begins at a column between words, and keeps the
// spaces within its lines. A word that is longer than a line is left whole: it
// may be a path to be copied.
func fold(text string, at, indent, width int) string {
	var s strings.Builder
	spaces := 0 // before the word, once it is known where that goes
	begun := false
	for i, word := range strings.Split(text, " ") {
		if i > 0 {
			spaces++
		}
		if word == "" {
			continue
		}
		size := ansi.StringWidthWc(word)
		if begun && at+spaces+size > width {
			s.WriteString("\n")
			at, spaces = 0, indent
		}
		s.WriteString(strings.Repeat(" ", spaces) + word)
		at += spaces + size
		spaces, begun = 0, true
	}
	return s.String()
}

// Printable is s on one line, with every control character, and every
// character that reorders or hides text, replaced by U+FFFD.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func seconds(s float64) string {
	if s >= 60 {
		return time.Duration(s * float64(time.Second)).Round(time.Second).String()
	}
	return fmt.Sprintf("%.1fs", s)
}
