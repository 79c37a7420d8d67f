package term

import (
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// Numbers of rows that the scrollback shows of a text. Ctrl-O shows longer texts completely,
// except outputs.
const (
	maxReply     = 400
	maxReasoning = 24   // reasoning
	maxCommand   = 2000 // many, since users approve what they see
	maxDiff      = 500
	maxNote      = 200 // notices, and inputs of the user
	maxMessage   = 12  // other messages to the model
	headRows     = 60  // beginning of an output
	tailRows     = 40  // end of an output
	rowsPerLine  = 8   // one line of an output
)

// clip shortens a text to about n bytes.
func clip(s string, n int) string { return text.Clip(s, n) }

// ruleRow returns a horizontal line.
func ruleRow(w int) string { return faint(strings.Repeat("─", max(0, min(w, maxProseWidth)))) }

// titleRow returns a title between two short horizontal lines. A line across the screen would
// wrap when the terminal becomes narrower.
func titleRow(title string, w int) string {
	row := faint("── ") + tty.Truncate(title, max(0, w-3))
	if end := " ──"; tty.Width(row)+tty.Width(end) <= w {
		row += faint(end)
	}
	return row
}

// proseRows renders a text without marks. It joins blank lines.
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
		rows = append(rows, wrapWords(line, w)...)
	}
	return rows
}

// commandRows renders a complete command.
func commandRows(command string, w int) []string {
	var rows []string
	marker := boldColoured(green, "$")
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(command), "\n"), "\n") {
		for i, row := range breakLine(line, w-2) {
			rows = append(rows, strings.TrimRight(marker+linePrefix(i)+bold(row), " "))
			marker = " "
		}
	}
	return rows
}

// linePrefix returns the prefix of row i of a wrapped line.
func linePrefix(i int) string {
	if i > 0 {
		return faint(continuationMark)
	}
	return " "
}

// diffRows renders a patch.
func diffRows(patch string, w int) []string {
	var rows []string
	for _, l := range (steps.Renderer{Width: w}).Item(&timeline.Item{Kind: timeline.Patch, Text: patch}) {
		rows = append(rows, l.Text)
	}
	return rows
}

// endRow describes how a command ended.
func endRow(x trajectories.Execution) string {
	duration := time.Duration(x.Duration)
	switch {
	case x.TimedOut:
		return coloured(red, "timed out") + faint(" after "+unit.Duration(duration)) + truncationNote(x)
	case x.Exception != "" && x.ExitCode < 0:
		return coloured(red, sanitize.Line(clip(x.Exception, 300)))
	case x.Signal != 0:
		return coloured(red, "killed by signal "+strconv.Itoa(x.Signal)) +
			faint(separator+unit.Duration(duration)) + truncationNote(x)
	case x.ExitCode != 0:
		return coloured(red, "exit "+strconv.Itoa(x.ExitCode)) +
			faint(separator+unit.Duration(duration)) + truncationNote(x)
	}
	return faint("exit 0" + separator + unit.Duration(duration) + truncationNote(x))
}

func truncationNote(x trajectories.Execution) string {
	if !x.Truncated {
		return ""
	}
	return faint(separator + unit.Size(x.Bytes) + " of output, the middle omitted")
}

// outcomeRow describes the outcome of an attempt and the limit that ended it, if any.
func outcomeRow(o trajectories.Outcome, limit string) string {
	stateColour := green
	switch o.Class {
	case trajectories.Submitted:
	case trajectories.Limit, trajectories.Interrupted:
		stateColour = yellow
	default:
		stateColour = red
	}
	row := boldColoured(stateColour, "■ "+sanitize.Line(clip(o.ExitStatus, 100)))
	row += faint(separator + text.Count(o.Steps, "step"))
	if o.Cost > 0 {
		row += faint(separator + unit.Cost(float64(o.Cost), o.Usage.Unpriced == 0))
	}
	row += faint(separator + unit.Duration(o.ActiveDuration()))
	if limit != "" {
		row += faint(separator + sanitize.Line(clip(limit, 40)) + " limit reached")
	}
	if text := strings.TrimPrefix(o.Error, o.ExitStatus+": "); text != "" {
		row += faint(separator) + coloured(stateColour, sanitize.Line(clip(text, 500)))
	}
	return row
}
