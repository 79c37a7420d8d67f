// Package steps renders the steps of a timeline as lines for a terminal: what
// others wrote is sanitized, long texts are folded where that is asked for, and
// lines are wrapped. Each line begins and ends its colours itself, so that any of
// them may be the first that is shown.
//
//	for _, line := range steps.Style{Width: 80, Labels: true}.Step(step) { ... }
package steps

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/safe"
	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/trajectories/timeline"
)

// Style says how steps look. The zero value shows all but reasoning, in colours,
// and wraps nothing.
type Style struct {
	Width int // columns; 0 does not wrap
	// Plain leaves out colours of mini's own; outputs keep theirs.
	Plain bool
	// Labels says that replies and commands have a line above them, too.
	Labels    bool
	Reasoning bool
	// Fold bounds what is shown of a kind; kinds that are not in it are whole.
	Fold map[timeline.Kind]Fold
	// Mark changes a line before it is wrapped; nil changes nothing. What it
	// returns has colours only where it marks something.
	Mark func(line string) string
}

// Fold is how many lines are shown of a longer text, at its beginning and at its
// end.
type Fold struct{ Head, Tail int }

// Line is a row of the terminal.
type Line struct {
	Text string
	// Whole is the line that this row is the first piece of, without colours and
	// as long as it is; empty for its other pieces.
	Whole string
}

// Step is a step, item by item.
func (s Style) Step(step *timeline.Step) []Line {
	var lines []Line
	for _, it := range step.Items {
		lines = append(lines, s.Item(it)...)
	}
	return lines
}

// Item is one item, with its parts.
func (s Style) Item(it *timeline.Item) []Line {
	if it.Kind == timeline.Reasoning && !s.Reasoning {
		return nil
	}
	var lines []Line
	if label := s.label(it); label != "" {
		lines = append(lines, s.labelLine(it, label))
	}
	lines = append(lines, s.text(it)...)
	for _, part := range it.Parts {
		lines = append(lines, s.Item(part)...)
	}
	return lines
}

// label is what stands above an item.
func (s Style) label(it *timeline.Item) string {
	switch {
	case it.Label != "":
		return Word(it.Label)
	case !s.Labels:
	case it.Kind == timeline.Reply:
		return "reply"
	case it.Kind == timeline.Reasoning:
		return "reasoning"
	case it.Kind == timeline.Command && it.Run == nil:
		return "command, of which no result is there"
	case it.Kind == timeline.Command:
		return "command"
	}
	return ""
}

// longestRule is how wide the line of a label is.
const longestRule = 60

func (s Style) labelLine(it *timeline.Item, label string) Line {
	whole := ""
	if it.Label != "" {
		whole = label
	}
	if s.Plain {
		return Line{"--- " + label, whole}
	}
	style := Faint
	if it.Kind == timeline.Alarm || it.Kind == timeline.Message && strings.Contains(it.Label, ":") {
		style = func(t string) string { return Coloured(ansi.Red, t) }
	}
	width := longestRule
	if s.Width > 0 {
		width = min(width, s.Width)
		label = screen.Cut(label, s.Width-6)
	}
	line := "── " + label + " "
	line += strings.Repeat("─", max(0, width-screen.Width(line)))
	if s.Width > 0 {
		line = screen.Cut(line, s.Width)
	}
	return Line{style(line), whole}
}

// text are the lines of an item's own text.
func (s Style) text(it *timeline.Item) []Line {
	if it.Text == "" {
		return nil
	}
	head, tail, left := it.Text, "", 0
	if f, ok := s.Fold[it.Kind]; ok {
		head, tail, left = f.cut(it.Text)
	}
	lead := ""
	if it.Kind == timeline.Command {
		lead = "$ "
	}
	lines := s.lines(it.Kind, head, lead)
	if left > 0 {
		note := fmt.Sprintf("%s %d lines are folded", screen.Ellipsis, left)
		if left == 1 {
			note = screen.Ellipsis + " 1 line is folded"
		}
		lines = append(lines, s.lines(timeline.Note, note, "")...)
		lines = append(lines, s.lines(it.Kind, tail, "")...)
	}
	return lines
}

// maxFolded bounds the head and the tail of a folded text, in bytes: a single line
// may be long, too.
const maxFolded = 64 << 10

// cut is the beginning and the end of a text, and how many lines are between them.
func (f Fold) cut(text string) (head, tail string, left int) {
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

// lines sanitizes a text and wraps it. Lead stands before its first line; lines of
// commands that follow are indented as far.
func (s Style) lines(kind timeline.Kind, text, lead string) []Line {
	if text == "" {
		return nil
	}
	if kind == timeline.Output {
		text = safe.Colours(text)
	} else {
		text = safe.Text(text)
	}
	var lines []Line
	for whole := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if kind == timeline.Command && lead == "" {
			lead = "  "
		}
		line := whole
		if s.Mark != nil {
			line = s.Mark(line)
		}
		for i, piece := range s.wrap(kind, line, len(lead)) {
			if !s.Plain {
				piece = colour(kind, piece)
			}
			l := Line{Text: lead + piece}
			if i == 0 {
				l.Whole = ansi.Strip(whole)
			}
			lines = append(lines, l)
			lead = strings.Repeat(" ", len(lead))
		}
	}
	return lines
}

// wrap breaks prose between words, and what is to be seen as it is anywhere.
func (s Style) wrap(kind timeline.Kind, line string, indent int) []string {
	width := max(2, s.Width-indent)
	switch {
	case s.Width <= 0:
		return []string{line}
	case kind == timeline.Command, kind == timeline.Output, kind == timeline.Patch, strings.Contains(line, "\x1b"):
		return Wrap(line, width)
	}
	return strings.Split(ansi.WrapWc(line, width, ""), "\n")
}

// colour colours what has no colours of its own.
func colour(kind timeline.Kind, line string) string {
	if strings.Contains(line, "\x1b") {
		return line
	}
	switch kind {
	case timeline.Reasoning, timeline.Note:
		return Faint(line)
	case timeline.Alarm:
		return Coloured(ansi.Red, line)
	case timeline.Command:
		return ansi.NewStyle().Bold().ForegroundColor(ansi.Cyan).Styled(line)
	case timeline.Patch:
		return patchColour(line)
	}
	return line
}

func patchColour(line string) string {
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

// Wrap breaks a sanitized line into pieces of so many columns, anywhere.
func Wrap(line string, width int) []string {
	width = max(2, width)
	if len(line) <= width { // no character is wider than its bytes
		return []string{line}
	}
	var out []string
	var piece strings.Builder
	pen, used := "", 0
	end := func() {
		if pen != "" {
			piece.WriteString(ansi.ResetStyle)
		}
		out = append(out, piece.String())
		piece.Reset()
		piece.WriteString(pen)
		used = 0
	}
	var state byte
	for len(line) > 0 {
		seq, w, n, next := ansi.DecodeSequenceWc(line, state, nil)
		line, state = line[n:], next
		if w == 0 && strings.HasPrefix(seq, "\x1b") {
			piece.WriteString(seq)
			if pen += seq; seq == ansi.ResetStyle {
				pen = ""
			}
			continue
		}
		if used+w > width {
			end()
		}
		piece.WriteString(seq)
		used += w
	}
	if used > 0 || len(out) == 0 {
		end()
	}
	return out
}

// maxWord bounds what is shown of a name, a status, a label, in bytes.
const maxWord = 1 << 10

// Word is the beginning of a text of others, sanitized and on one line.
func Word(s string) string {
	if len(s) > maxWord {
		s = s[:maxWord] // a character that is cut is shown as one that cannot be read
	}
	return safe.Line(s)
}
