package live

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// latestLines returns the lower part of the screen: pulls in progress and the newest log
// entries, in at most lineCount lines.
func (b *board) latestLines(f frame, lineCount int) []string {
	if lineCount == 0 {
		return nil
	}
	lines := []string{steps.Faint(terminal.Truncate(" latest "+strings.Repeat("─", max(0, f.width-9)), f.width))}
	for _, p := range b.Pulls {
		if len(lines)-1 >= max(1, lineCount/2) {
			break
		}
		lines = append(lines, pullLine(p, f.width))
	}
	for _, entry := range b.shownLog(lineCount) {
		line := b.logLine(entry, f.width)
		if entry.instanceID != "" && entry.name == f.selected {
			line = selectionMarker + line[1:]
		}
		lines = append(lines, line)
	}
	return lines[:min(len(lines), lineCount)]
}

// shownLog returns the log entries that latestLines shows in lineCount lines, newest first.
func (b *board) shownLog(lineCount int) []logEntry {
	room := lineCount - 1 - min(len(b.Pulls), max(0, max(1, lineCount/2)))
	var shown []logEntry
	for _, entry := range slices.Backward(b.log) {
		if len(shown) >= room {
			break
		}
		shown = append(shown, entry)
	}
	return shown
}

func pullLine(p runner.PullState, w int) string {
	progress := fmt.Sprintf("%d/%d layers  %s ", p.LayersDone, p.Layers, unit.Size(p.Bytes)+" of "+unit.Size(p.Total))
	if p.Layers == 0 {
		progress = "asking the registry "
	}
	mark := steps.Coloured(ansi.Blue, "↓")
	image := table.TruncateMiddle("pull "+sanitizeLine(p.Image), max(12, w-4-terminal.Width(progress)))
	return " " + mark + " " + terminal.JoinEnds(image, progress, w-3)
}

func (b *board) logLine(entry logEntry, w int) string {
	mark := "✓"
	switch {
	case entry.verdict != "" && !entry.retry:
		mark = verdictMark(entry.verdict)
	case entry.class == "" && entry.verdict == "":
		mark = "!"
	case entry.retry:
		mark = "↻"
	case entry.class == trajectories.Limit:
		mark = "–"
	case !entry.class.IsResult():
		mark = "✗"
	}
	colour := steps.ClassColour(entry.class)
	if entry.verdict != "" {
		colour = steps.VerdictColour(entry.verdict)
	}
	if entry.retry {
		colour = ansi.Yellow
	}
	at := entry.at.Format("15:04:05")
	line := " " + steps.Coloured(colour, mark) + " "
	room := w - 3
	if w >= 60 {
		line += steps.Faint(at) + "  "
		room -= len(at) + 2
	}
	text := sanitizeLine(entry.text)
	if entry.name != "" {
		room := min(b.idWidth(w), w/2)
		id := terminal.PadRight(table.TruncateMiddle(sanitizeLine(entry.name), room), room) + "  "
		text = id + text
	}
	return line + terminal.Truncate(text, room)
}
