package live

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// latestLines returns the lower part of the screen: pulls in progress and the newest log
// entries, in n lines.
func (b *board) latestLines(f frame, n int) []string {
	if n == 0 {
		return nil
	}
	lines := []string{steps.Faint(truncate(" latest "+strings.Repeat("─", max(0, f.width-9)), f.width))}
	for _, p := range b.pulls {
		if len(lines)-1 >= max(1, n/2) {
			break
		}
		lines = append(lines, pullLine(p, f.width))
	}
	for _, e := range b.shownLog(n) {
		line := b.logLine(e, f.width)
		if e.instanceID != "" && e.name == f.selected {
			line = selectionMarker + line[1:]
		}
		lines = append(lines, line)
	}
	return lines[:min(len(lines), n)]
}

// shownLog returns the log entries that fit into n lines, newest first.
func (b *board) shownLog(n int) []logEntry {
	room := n - 1 - min(len(b.pulls), max(0, max(1, n/2)))
	var shown []logEntry
	for _, e := range slices.Backward(b.log) {
		if len(shown) >= room {
			break
		}
		shown = append(shown, e)
	}
	return shown
}

func pullLine(p runner.PullState, w int) string {
	far := fmt.Sprintf("%d/%d layers  %s ", p.LayersDone, p.Layers, formatPulled(p.Bytes, p.Total))
	if p.Layers == 0 {
		far = "asking the registry "
	}
	mark := steps.Coloured(ansi.Blue, "↓")
	return " " + mark + " " + joinEnds(table.TruncateMiddle("pull "+sanitizeLine(p.Image), max(12, w-4-width(far))), far, w-3)
}

func (b *board) logLine(n logEntry, w int) string {
	mark := "✓"
	switch {
	case n.verdict != "" && !n.retry:
		mark = verdictMark(n.verdict)
	case n.class == "" && n.verdict == "":
		mark = "!"
	case n.retry:
		mark = "↻"
	case n.class == trajectories.Limit:
		mark = "–"
	case !n.class.Counts():
		mark = "✗"
	}
	colour := steps.ClassColour(n.class)
	if n.verdict != "" {
		colour = steps.VerdictColour(n.verdict)
	}
	if n.retry {
		colour = ansi.Yellow
	}
	at := n.at.Format("15:04:05")
	line := " " + steps.Coloured(colour, mark) + " "
	room := w - 3
	if w >= 60 {
		line += steps.Faint(at) + "  "
		room -= len(at) + 2
	}
	text := sanitizeLine(n.text)
	if n.name != "" {
		room := min(b.idWidth(w), w/2)
		id := padRight(table.TruncateMiddle(sanitizeLine(n.name), room), room) + "  "
		text = id + text
	}
	return line + truncate(text, room)
}
