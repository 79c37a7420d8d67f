// Package steps renders the steps of a timeline as terminal lines. It sanitizes untrusted text,
// can fold long texts, and wraps lines. Each line sets and resets its own colours, so that a
// caller can show any part of the lines.
//
//	for _, line := range steps.Renderer{Width: 80, Labels: true}.Step(step) { ... }
package steps

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/difflines"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/trajectories/timeline"
)

// Renderer configures how steps are rendered. The zero value shows everything but reasoning and
// the labels of Labels, with colours and without wrapping.
type Renderer struct {
	Width int // columns; 0 disables wrapping
	// Plain disables mini's own colours. Outputs keep the colours of their escape sequences.
	Plain bool
	// Labels adds a label line above replies, reasoning and commands that have no label.
	Labels    bool
	Reasoning bool
	// Fold limits how many lines of an item are shown, by kind. Other kinds are shown completely.
	Fold map[timeline.Kind]Fold
	// Highlight highlights text in a line before the line is wrapped; may be nil. It must not
	// change the text itself.
	Highlight func(line string) string

	diff *difflines.Scanner // of the item
}

// Fold is the number of lines shown at the beginning and at the end of a longer text.
type Fold struct{ Head, Tail int }

// Line is one row of the terminal.
type Line struct {
	Text string
	// Source is the whole line, unwrapped and without colours. It is empty in the second and
	// later rows of a wrapped line, and in the label lines that Labels adds.
	Source string
}

// Step renders a step.
func (r Renderer) Step(step *timeline.Step) []Line {
	var lines []Line
	for _, item := range step.Items {
		lines = append(lines, r.Item(item)...)
	}
	return lines
}

// Item renders an item and its results.
func (r Renderer) Item(item *timeline.Item) []Line {
	if item.Kind == timeline.Reasoning && !r.Reasoning {
		return nil
	}
	var lines []Line
	if label := r.label(item); label != "" {
		lines = append(lines, r.labelLine(item, label))
	}
	lines = append(lines, r.itemLines(item)...)
	for _, part := range item.Results {
		lines = append(lines, r.Item(part)...)
	}
	return lines
}

// label returns the label of an item; empty if it has none.
func (r Renderer) label(item *timeline.Item) string {
	switch {
	case item.Label != "":
		return OneLine(item.Label)
	case !r.Labels:
	case item.Kind == timeline.Reply:
		return "reply"
	case item.Kind == timeline.Reasoning:
		return "reasoning"
	case item.Kind == timeline.Command && item.Execution == nil:
		return "command without a result"
	case item.Kind == timeline.Command:
		return "command"
	}
	return ""
}

// maxLabelWidth is the width up to which a horizontal line fills a label line. A label may be
// wider.
const maxLabelWidth = 60

func (r Renderer) labelLine(item *timeline.Item, label string) Line {
	source := ""
	if item.Label != "" {
		source = label
	}
	if r.Plain {
		return Line{"--- " + label, source}
	}
	style := Faint
	if item.Kind == timeline.Problem || item.Kind == timeline.Message && strings.Contains(item.Label, ":") {
		style = func(t string) string { return Coloured(ansi.Red, t) }
	}
	width := maxLabelWidth
	if r.Width > 0 {
		width = min(width, r.Width)
		label = terminal.Truncate(label, r.Width-6)
	}
	line := "── " + label + " "
	line += strings.Repeat("─", max(0, width-terminal.Width(line)))
	if r.Width > 0 {
		line = terminal.Truncate(line, r.Width)
	}
	return Line{style(line), source}
}

// itemLines renders the text of an item, folded if necessary.
func (r Renderer) itemLines(item *timeline.Item) []Line {
	if item.Text == "" {
		return nil
	}
	r.diff = new(difflines.Scanner)
	head, tail, folded := item.Text, "", 0
	if f, ok := r.Fold[item.Kind]; ok {
		head, tail, folded = f.split(item.Text)
	}
	if item.Kind == timeline.Reply {
		return r.replyLines(item.Text)
	}
	prefix := ""
	if item.Kind == timeline.Command {
		prefix = "$ "
	}
	lines := r.textLines(item.Kind, head, prefix)
	if folded > 0 {
		note := fmt.Sprintf("%s %d lines folded", terminal.Ellipsis, folded)
		if folded == 1 {
			note = terminal.Ellipsis + " 1 line folded"
		}
		lines = append(lines, r.textLines(timeline.Note, note, "")...)
		lines = append(lines, r.textLines(item.Kind, tail, "")...)
	}
	return lines
}

// replyLines renders a reply. The source of a table is that of its first row.
func (r Renderer) replyLines(text string) []Line {
	reply := Reply{Width: r.Width, Plain: r.Plain, Break: true}
	reply.read(text)
	reply.finish(nil)
	var lines []Line
	for i, row := range reply.rows {
		if r.Highlight != nil {
			row = r.Highlight(row)
		}
		lines = append(lines, Line{Text: row, Source: reply.sources[i]})
	}
	return lines
}

// maxFolded bounds the head and the tail of a folded text, each in bytes: a few lines can be
// very long.
const maxFolded = 64 << 10

// split returns the beginning and the end of a text, and the number of lines in between. If
// that number is 0, head is the whole text. For a text of few but very long lines it is 1.
func (f Fold) split(text string) (head, tail string, folded int) {
	text = strings.TrimSuffix(text, "\n")
	folded = strings.Count(text, "\n") + 1 - f.Head - f.Tail
	if folded <= 0 {
		if len(text) <= maxFolded {
			return text, "", 0
		}
		return text[:maxFolded], text[max(maxFolded, len(text)-maxFolded):], 1
	}
	headEnd := 0
	for range f.Head {
		headEnd += strings.IndexByte(text[headEnd:], '\n') + 1
	}
	tailStart := len(text)
	for range f.Tail {
		tailStart = strings.LastIndexByte(text[:tailStart], '\n')
	}
	head, tail = text[:headEnd], text[tailStart:]+"\n"
	return head[:min(len(head), maxFolded)], strings.TrimPrefix(tail[max(0, len(tail)-maxFolded):], "\n"), folded
}

// textLines sanitizes and wraps a text. prefix precedes its first line. The other lines of a
// command are indented by the width of the prompt.
func (r Renderer) textLines(kind timeline.Kind, text, prefix string) []Line {
	if text == "" {
		return nil
	}
	if kind == timeline.Output {
		text = sanitize.Output(text)
	} else {
		text = sanitize.Text(text)
	}
	var lines []Line
	rest := strings.TrimSuffix(text, "\n")
	for more := true; more; {
		var source string
		source, rest, more = strings.Cut(rest, "\n")
		class := difflines.Class("")
		if kind == timeline.Patch || kind == timeline.Output {
			class = r.diff.Line(source, rest)
		}
		if kind == timeline.Command && prefix == "" {
			prefix = "  "
		}
		line := source
		if r.Highlight != nil {
			line = r.Highlight(line)
		}
		for i, row := range r.wrap(kind, line, len(prefix)) {
			if !r.Plain {
				row = colourLine(kind, class, row)
			}
			l := Line{Text: prefix + row}
			if i == 0 {
				l.Source = ansi.Strip(source)
			}
			lines = append(lines, l)
			prefix = strings.Repeat(" ", len(prefix))
		}
	}
	return lines
}

// wrap wraps prose between words, and commands, outputs, patches and lines with colours at any
// column.
func (r Renderer) wrap(kind timeline.Kind, line string, indent int) []string {
	width := max(2, r.Width-indent)
	switch {
	case r.Width <= 0:
		return []string{line}
	case kind == timeline.Command, kind == timeline.Output, kind == timeline.Patch, strings.Contains(line, "\x1b"):
		return HardWrap(line, width)
	}
	return Wrap(line, width)
}

// colourLine colours a line according to the kind of its item and, in a patch or an output, its
// class, unless the line has colours.
func colourLine(kind timeline.Kind, class difflines.Class, line string) string {
	if strings.Contains(line, "\x1b") {
		return line
	}
	switch kind {
	case timeline.Reasoning, timeline.Note:
		return Faint(line)
	case timeline.Problem:
		return Coloured(ansi.Red, line)
	case timeline.Command:
		return Bold(line)
	case timeline.Output:
		if class == "" {
			return Faint(line)
		}
		return DiffStyle(class)(line)
	case timeline.Patch:
		return DiffStyle(class)(line)
	}
	return line
}

// maxOneLine bounds the input of OneLine, in bytes.
const maxOneLine = 1 << 10

// OneLine sanitizes the beginning of an untrusted text and joins its lines.
func OneLine(s string) string {
	if len(s) > maxOneLine {
		s = s[:maxOneLine] // a split character becomes U+FFFD
	}
	return sanitize.Line(s)
}
