package screen

import (
	"strings"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/safe"
	tty "github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	models "github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// What is written above is bounded: what is longer says so, and is opened whole
// with a key.
const (
	maxReply    = 400  // rows
	maxThought  = 24   // rows of thinking text
	maxCommand  = 2000 // rows: people decide by them
	maxDiff     = 500
	maxNote     = 200
	maxTold     = 12
	headRows    = 60 // of an output, as they come
	tailRows    = 40 // of an output, at its end
	rowsPerLine = 8  // of one line of an output
)

func costOf(dollars float64) models.Cost { return models.Cost(dollars) }

// bounded is a text of at most n bytes, for places of one line.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + tty.Ellipsis
}

// rule is a line across.
func rule(w int) string { return faint(strings.Repeat("─", max(0, min(w, measure)))) }

// titled is a title between two short lines: what is above is wrapped anew by a
// terminal that becomes narrower, and a line across would fill rows of it.
func titled(title string, w int) string {
	row := faint("── ") + tty.Cut(title, max(0, w-3))
	if end := " ──"; tty.Width(row)+tty.Width(end) <= w {
		row += faint(end)
	}
	return row
}

// replyRows is what a model wrote, but for the commands, which are shown for
// themselves.
func replyRows(text string, commands []string, w int) []string {
	var rows []string
	var prose, code []string
	fence := ""
	flush := func() {
		if s := strings.Trim(strings.Join(prose, "\n"), "\n"); strings.TrimSpace(s) != "" {
			rows = apart(rows, proseRows(s, w))
		}
		prose = nil
	}
	for line := range strings.SplitSeq(safe.Text(text), "\n") {
		mark := strings.TrimSpace(line)
		switch {
		case fence == "" && strings.HasPrefix(mark, "```"):
			flush()
			fence, code = mark[:len(mark)-len(strings.TrimLeft(mark, "`"))], nil
		case fence != "" && mark == fence:
			rows = apart(rows, codeRows(code, commands, w))
			fence = ""
		case fence != "":
			code = append(code, line)
		default:
			prose = append(prose, line)
		}
	}
	if fence != "" {
		rows = apart(rows, codeRows(code, commands, w))
	}
	flush()
	return rows
}

// apart puts rows after others, with a blank one between.
func apart(rows, more []string) []string {
	if len(rows) > 0 && len(more) > 0 {
		rows = append(rows, "")
	}
	return append(rows, more...)
}

func proseRows(text string, w int) []string {
	var rows []string
	blank := false
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " ")
		if line == "" {
			blank = len(rows) > 0
			continue
		}
		if blank {
			rows, blank = append(rows, ""), false
		}
		if title, ok := heading(line); ok {
			rows = append(rows, each(words(title, w), bold)...)
			continue
		}
		rows = append(rows, words(line, w)...)
	}
	return rows
}

// heading is the text of a line that is one.
func heading(line string) (string, bool) {
	title := strings.TrimLeft(line, "#")
	if n := len(line) - len(title); n == 0 || n > 6 || !strings.HasPrefix(title, " ") {
		return "", false
	}
	return strings.TrimSpace(title), true
}

// codeRows is a fenced block; nothing where it is a command.
func codeRows(lines, commands []string, w int) []string {
	body := strings.TrimSpace(strings.Join(lines, "\n"))
	for _, c := range commands {
		if strings.TrimSpace(safe.Text(c)) == body {
			return nil
		}
	}
	var rows []string
	for _, line := range lines {
		for i, row := range pieces(line, w-2) {
			rows = append(rows, faint("│")+mark(i)+row)
		}
	}
	return rows
}

// commandRows is a command as it would be typed. Nothing of it is left out.
func commandRows(command string, w int) []string {
	var rows []string
	lead := strong(green, "$")
	for line := range strings.SplitSeq(strings.TrimRight(safe.Text(command), "\n"), "\n") {
		for i, row := range pieces(line, w-2) {
			rows = append(rows, strings.TrimRight(lead+mark(i)+bold(row), " "))
			lead = " "
		}
	}
	return rows
}

// mark stands before the piece with this number of a line.
func mark(i int) string {
	if i > 0 {
		return faint(goesOn)
	}
	return " "
}

// diffRows is a patch.
func diffRows(patch string, w int) []string {
	var rows []string
	for _, line := range (steps.Style{Width: w}).Item(&timeline.Item{Kind: timeline.Patch, Text: patch}) {
		rows = append(rows, line.Text)
	}
	return rows
}

// endRow says how a command ended.
func endRow(e events.ActionEnded) string {
	d := time.Duration(e.Duration)
	switch {
	case e.TimedOut:
		return coloured(red, "timed out") + faint(" after "+took(d)) + kept(e)
	case e.Exception != "" && e.ExitCode < 0:
		return coloured(red, safe.Line(bounded(e.Exception, 300)))
	case e.Signal != 0:
		return coloured(red, "killed by signal "+grouped(int64(e.Signal))) + faint(between+took(d)) + kept(e)
	case e.ExitCode != 0:
		return coloured(red, "exit "+grouped(int64(e.ExitCode))) + faint(between+took(d)) + kept(e)
	}
	return faint("exit 0" + between + took(d) + kept(e))
}

func kept(e events.ActionEnded) string {
	if !e.Truncated {
		return ""
	}
	return faint(between + size(e.Bytes) + " of output, the middle not kept")
}

// size is a number of bytes in words.
func size(n int64) string {
	switch {
	case n >= 10_000_000:
		return grouped(n/1_000_000) + " MB"
	case n >= 10_000:
		return grouped(n/1000) + " kB"
	}
	return grouped(n) + " bytes"
}

// outcomeRow says how an attempt ended, and at which limit, if at one.
func outcomeRow(o trajectories.Outcome, limit string) string {
	c := green
	switch o.Class {
	case trajectories.Submitted:
	case trajectories.Limit, trajectories.Interrupted:
		c = yellow
	default:
		c = red
	}
	row := strong(c, "■ "+safe.Line(bounded(o.ExitStatus, 100)))
	row += faint(between + count(o.Steps, "step"))
	if known := o.Usage.Unpriced == 0; o.Cost > 0 || !known {
		row += faint(between + report.Spent(o.Cost, known))
	}
	row += faint(between + timeline.Clock(o.Took()))
	if limit != "" {
		row += faint(between + "the limit of " + safe.Line(bounded(limit, 40)) + " is reached")
	}
	if text := strings.TrimPrefix(o.Error, o.ExitStatus+": "); text != "" {
		row += faint(between) + coloured(c, safe.Line(bounded(text, 500)))
	}
	return row
}
