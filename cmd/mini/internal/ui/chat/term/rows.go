package term

import (
	"strings"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	models "github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// Limits of the scrollback; longer texts are shortened, and Ctrl-O shows them completely.
const (
	maxReply    = 400  // rows
	maxThought  = 24   // rows of reasoning
	maxCommand  = 2000 // rows; users decide by them
	maxDiff     = 500
	maxNote     = 200
	maxMessage  = 12
	headRows    = 60 // of the beginning of an output
	tailRows    = 40 // of the end of an output
	rowsPerLine = 8  // of one output line
)

func dollars(dollars float64) models.Cost { return models.Cost(dollars) }

// clip shortens a text to about n bytes.
func clip(s string, n int) string { return text.Clip(s, n) }

// ruleRow returns a horizontal line.
func ruleRow(w int) string { return faint(strings.Repeat("─", max(0, min(w, maxProseWidth)))) }

// titleRow returns a title between two short rules. A rule across the screen would fill
// several rows when the terminal becomes narrower.
func titleRow(title string, w int) string {
	row := faint("── ") + tty.Truncate(title, max(0, w-3))
	if end := " ──"; tty.Width(row)+tty.Width(end) <= w {
		row += faint(end)
	}
	return row
}

// replyRows renders a reply without its commands, which are shown separately.
func replyRows(text string, commands []string, w int) []string {
	var rows []string
	var prose, code []string
	fence := ""
	flush := func() {
		if s := strings.Trim(strings.Join(prose, "\n"), "\n"); strings.TrimSpace(s) != "" {
			rows = appendSpaced(rows, proseRows(s, w))
		}
		prose = nil
	}
	for line := range strings.SplitSeq(sanitize.Text(text), "\n") {
		mark := strings.TrimSpace(line)
		switch {
		case fence == "" && strings.HasPrefix(mark, "```"):
			flush()
			fence, code = mark[:len(mark)-len(strings.TrimLeft(mark, "`"))], nil
		case fence != "" && mark == fence:
			rows = appendSpaced(rows, codeRows(code, commands, w))
			fence = ""
		case fence != "":
			code = append(code, line)
		default:
			prose = append(prose, line)
		}
	}
	if fence != "" {
		rows = appendSpaced(rows, codeRows(code, commands, w))
	}
	flush()
	return rows
}

// appendSpaced appends rows after a blank row.
func appendSpaced(rows, more []string) []string {
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
			rows = append(rows, styleRows(wrapWords(title, w), bold)...)
			continue
		}
		rows = append(rows, wrapWords(line, w)...)
	}
	return rows
}

// heading returns the text of a Markdown heading.
func heading(line string) (string, bool) {
	title := strings.TrimLeft(line, "#")
	if n := len(line) - len(title); n == 0 || n > 6 || !strings.HasPrefix(title, " ") {
		return "", false
	}
	return strings.TrimSpace(title), true
}

// codeRows renders a fenced block; nothing if it is one of the commands.
func codeRows(lines, commands []string, w int) []string {
	body := strings.TrimSpace(strings.Join(lines, "\n"))
	for _, c := range commands {
		if strings.TrimSpace(sanitize.Text(c)) == body {
			return nil
		}
	}
	var rows []string
	for _, line := range lines {
		for i, row := range breakLine(line, w-2) {
			rows = append(rows, faint("│")+linePrefix(i)+row)
		}
	}
	return rows
}

// commandRows renders a complete command.
func commandRows(command string, w int) []string {
	var rows []string
	lead := boldColoured(green, "$")
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(command), "\n"), "\n") {
		for i, row := range breakLine(line, w-2) {
			rows = append(rows, strings.TrimRight(lead+linePrefix(i)+bold(row), " "))
			lead = " "
		}
	}
	return rows
}

// linePrefix returns the prefix of row i of a line.
func linePrefix(i int) string {
	if i > 0 {
		return faint(continuationMark)
	}
	return " "
}

// diffRows renders a patch.
func diffRows(patch string, w int) []string {
	var rows []string
	for _, line := range (steps.Renderer{Width: w}).Item(&timeline.Item{Kind: timeline.Patch, Text: patch}) {
		rows = append(rows, line.Text)
	}
	return rows
}

// endRow describes how a command ended.
func endRow(e events.ActionEnded) string {
	d := time.Duration(e.Duration)
	switch {
	case e.TimedOut:
		return coloured(red, "timed out") + faint(" after "+formatDuration(d)) + truncationNote(e)
	case e.Exception != "" && e.ExitCode < 0:
		return coloured(red, sanitize.Line(clip(e.Exception, 300)))
	case e.Signal != 0:
		return coloured(red, "killed by signal "+formatThousands(int64(e.Signal))) + faint(separator+formatDuration(d)) + truncationNote(e)
	case e.ExitCode != 0:
		return coloured(red, "exit "+formatThousands(int64(e.ExitCode))) + faint(separator+formatDuration(d)) + truncationNote(e)
	}
	return faint("exit 0" + separator + formatDuration(d) + truncationNote(e))
}

func truncationNote(e events.ActionEnded) string {
	if !e.Truncated {
		return ""
	}
	return faint(separator + table.SizeText(e.Bytes) + " of output, the middle omitted")
}

// outcomeRow describes the outcome of an attempt and the limit that ended it, if any.
func outcomeRow(o trajectories.Outcome, limit string) string {
	c := green
	switch o.Class {
	case trajectories.Submitted:
	case trajectories.Limit, trajectories.Interrupted:
		c = yellow
	default:
		c = red
	}
	row := boldColoured(c, "■ "+sanitize.Line(clip(o.ExitStatus, 100)))
	row += faint(separator + count(o.Steps, "step"))
	if known := o.Usage.Unpriced == 0; o.Cost > 0 || !known {
		row += faint(separator + report.CostText(o.Cost, known))
	}
	row += faint(separator + timeline.FormatDuration(o.ActiveDuration()))
	if limit != "" {
		row += faint(separator + sanitize.Line(clip(limit, 40)) + " limit reached")
	}
	if text := strings.TrimPrefix(o.Error, o.ExitStatus+": "); text != "" {
		row += faint(separator) + coloured(c, sanitize.Line(clip(text, 500)))
	}
	return row
}
