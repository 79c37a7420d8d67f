// Package steps renders the steps of a timeline as terminal lines: untrusted text is
// sanitized, long texts can be folded, and lines are wrapped. Each line sets and resets its
// own colours, so that lines can be shown individually.
//
//	for _, line := range steps.Renderer{Width: 80, Labels: true}.Step(step) { ... }
package steps

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/trajectories/timeline"
)

// Renderer configures how steps are rendered. The zero value shows everything but reasoning,
// with colours and without wrapping.
type Renderer struct {
	Width int // columns; 0 disables wrapping
	// Plain disables mini's own colours; outputs keep theirs.
	Plain bool
	// Labels adds a label line above replies and commands.
	Labels    bool
	Reasoning bool
	// Fold bounds the lines shown of an item kind; other kinds are shown completely.
	Fold map[timeline.Kind]Fold
	// Highlight changes a line before it is wrapped; may be nil. It may add colours only to
	// highlight text.
	Highlight func(line string) string
}

// Fold is the number of lines shown at the beginning and at the end of a longer text.
type Fold struct{ Head, Tail int }

// Line is a row of the terminal.
type Line struct {
	Text string
	// Source is the unwrapped line without colours in the first row of a line; empty in its
	// other rows.
	Source string
}

// Step renders a step.
func (s Renderer) Step(step *timeline.Step) []Line {
	var lines []Line
	for _, it := range step.Items {
		lines = append(lines, s.Item(it)...)
	}
	return lines
}

// Item renders an item and its parts.
func (s Renderer) Item(it *timeline.Item) []Line {
	if it.Kind == timeline.Reasoning && !s.Reasoning {
		return nil
	}
	var lines []Line
	if label := s.label(it); label != "" {
		lines = append(lines, s.labelLine(it, label))
	}
	lines = append(lines, s.itemLines(it)...)
	for _, part := range it.Results {
		lines = append(lines, s.Item(part)...)
	}
	return lines
}

// label returns the label of an item; empty if it has none.
func (s Renderer) label(it *timeline.Item) string {
	switch {
	case it.Label != "":
		return OneLine(it.Label)
	case !s.Labels:
	case it.Kind == timeline.Reply:
		return "reply"
	case it.Kind == timeline.Reasoning:
		return "reasoning"
	case it.Kind == timeline.Command && it.Execution == nil:
		return "command without a result"
	case it.Kind == timeline.Command:
		return "command"
	}
	return ""
}

// maxRuleWidth is the maximum width of a label line.
const maxRuleWidth = 60

func (s Renderer) labelLine(it *timeline.Item, label string) Line {
	whole := ""
	if it.Label != "" {
		whole = label
	}
	if s.Plain {
		return Line{"--- " + label, whole}
	}
	style := Faint
	if it.Kind == timeline.Problem || it.Kind == timeline.Message && strings.Contains(it.Label, ":") {
		style = func(t string) string { return Coloured(ansi.Red, t) }
	}
	width := maxRuleWidth
	if s.Width > 0 {
		width = min(width, s.Width)
		label = terminal.Truncate(label, s.Width-6)
	}
	line := "── " + label + " "
	line += strings.Repeat("─", max(0, width-terminal.Width(line)))
	if s.Width > 0 {
		line = terminal.Truncate(line, s.Width)
	}
	return Line{style(line), whole}
}

// itemLines renders the text of an item.
func (s Renderer) itemLines(it *timeline.Item) []Line {
	if it.Text == "" {
		return nil
	}
	head, tail, left := it.Text, "", 0
	if f, ok := s.Fold[it.Kind]; ok {
		head, tail, left = f.split(it.Text)
	}
	lead := ""
	if it.Kind == timeline.Command {
		lead = "$ "
	}
	lines := s.textLines(it.Kind, head, lead)
	if left > 0 {
		note := fmt.Sprintf("%s %d lines folded", terminal.Ellipsis, left)
		if left == 1 {
			note = terminal.Ellipsis + " 1 line folded"
		}
		lines = append(lines, s.textLines(timeline.Note, note, "")...)
		lines = append(lines, s.textLines(it.Kind, tail, "")...)
	}
	return lines
}

// maxFolded bounds the head and the tail of a folded text, in bytes, since a line may be long.
const maxFolded = 64 << 10

// split returns the beginning and the end of a text, and the number of lines in between.
func (f Fold) split(text string) (head, tail string, left int) {
	text = strings.TrimSuffix(text, "\n")
	left = strings.Count(text, "\n") + 1 - f.Head - f.Tail
	if left <= 0 {
		if len(text) <= maxFolded {
			return text, "", 0
		}
		return text[:maxFolded], text[max(maxFolded, len(text)-maxFolded):], 1
	}
	at := 0
	for range f.Head {
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	end := len(text)
	for range f.Tail {
		end = strings.LastIndexByte(text[:end], '\n')
	}
	head, tail = text[:at], text[end:]+"\n"
	return head[:min(len(head), maxFolded)], strings.TrimPrefix(tail[max(0, len(tail)-maxFolded):], "\n"), left
}

// textLines sanitizes and wraps a text. lead precedes its first line; other lines of a command
// are indented by its width.
func (s Renderer) textLines(kind timeline.Kind, text, lead string) []Line {
	if text == "" {
		return nil
	}
	if kind == timeline.Output {
		text = sanitize.Output(text)
	} else {
		text = sanitize.Text(text)
	}
	var lines []Line
	for whole := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if kind == timeline.Command && lead == "" {
			lead = "  "
		}
		line := whole
		if s.Highlight != nil {
			line = s.Highlight(line)
		}
		for i, piece := range s.wrap(kind, line, len(lead)) {
			if !s.Plain {
				piece = colourLine(kind, piece)
			}
			l := Line{Text: lead + piece}
			if i == 0 {
				l.Source = ansi.Strip(whole)
			}
			lines = append(lines, l)
			lead = strings.Repeat(" ", len(lead))
		}
	}
	return lines
}

// wrap wraps prose between words, and commands, outputs and patches at any column.
func (s Renderer) wrap(kind timeline.Kind, line string, indent int) []string {
	width := max(2, s.Width-indent)
	switch {
	case s.Width <= 0:
		return []string{line}
	case kind == timeline.Command, kind == timeline.Output, kind == timeline.Patch, strings.Contains(line, "\x1b"):
		return HardWrap(line, width)
	}
	return strings.Split(ansi.WrapWc(line, width, ""), "\n")
}

// colourLine colours a line that has no colours of its own.
func colourLine(kind timeline.Kind, line string) string {
	if strings.Contains(line, "\x1b") {
		return line
	}
	switch kind {
	case timeline.Reasoning, timeline.Note:
		return Faint(line)
	case timeline.Problem:
		return Coloured(ansi.Red, line)
	case timeline.Command:
		return ansi.NewStyle().Bold().ForegroundColor(ansi.Cyan).Styled(line)
	case timeline.Patch:
		return colourPatchLine(line)
	}
	return line
}

func colourPatchLine(line string) string {
	switch {
	case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "),
		strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return Bold(line)
	case strings.HasPrefix(line, "@@"):
		return Coloured(ansi.Cyan, line)
	case strings.HasPrefix(line, "+"):
		return Coloured(ansi.Green, line)
	case strings.HasPrefix(line, "-"):
		return Coloured(ansi.Red, line)
	}
	return line
}

// HardWrap splits a sanitized line into rows of the given width, at any column.
func HardWrap(line string, width int) []string {
	width = max(2, width)
	if len(line) <= width { // no character has more columns than bytes
		return []string{line}
	}
	return terminal.SplitStyled(ansi.HardwrapWc(line, width, true))
}

// maxOneLine bounds names, statuses and labels, in bytes.
const maxOneLine = 1 << 10

// OneLine sanitizes the beginning of an untrusted text and joins its lines.
func OneLine(s string) string {
	if len(s) > maxOneLine {
		s = s[:maxOneLine] // a split character becomes U+FFFD
	}
	return sanitize.Line(s)
}
