package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// latest is the lower part: pulls that go on, and what ended last.
func (b *board) latest(f frame, n int) []string {
	if n == 0 {
		return nil
	}
	lines := []string{steps.Faint(cut(" latest "+strings.Repeat("─", max(0, f.width-9)), f.width))}
	for _, p := range b.pulls {
		if len(lines)-1 >= max(1, n/2) {
			break
		}
		lines = append(lines, pullLine(p, f.width))
	}
	for _, one := range b.shownNotes(n) {
		line := b.noteLine(one, f.width)
		if one.id != "" && one.instance == f.picked {
			line = marker + line[1:]
		}
		lines = append(lines, line)
	}
	return lines[:min(len(lines), n)]
}

// shownNotes are the notes that have room below n lines, newest first.
func (b *board) shownNotes(n int) []note {
	room := n - 1 - min(len(b.pulls), max(0, max(1, n/2)))
	var shown []note
	for _, one := range slices.Backward(b.notes) {
		if len(shown) >= room {
			break
		}
		shown = append(shown, one)
	}
	return shown
}

func pullLine(p runner.PullState, w int) string {
	far := fmt.Sprintf("%d/%d layers  %s ", p.LayersDone, p.Layers, megabytes(p.Bytes, p.Total))
	if p.Layers == 0 {
		far = "asking the registry "
	}
	mark := steps.Coloured(ansi.Blue, "↓")
	return " " + mark + " " + beside(report.Middle("pull "+clean(p.Image), max(12, w-4-width(far))), far, w-3)
}

func (b *board) noteLine(n note, w int) string {
	mark := "✓"
	switch {
	case n.verdict != "" && !n.again:
		mark = verdictMark(n.verdict)
	case n.class == "" && n.verdict == "":
		mark = "!"
	case n.again:
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
	if n.again {
		colour = ansi.Yellow
	}
	at := n.at.Format("15:04:05")
	line := " " + steps.Coloured(colour, mark) + " "
	room := w - 3
	if w >= 60 {
		line += steps.Faint(at) + "  "
		room -= len(at) + 2
	}
	text := clean(n.text)
	if n.instance != "" {
		room := min(b.idWidth(w), w/2)
		id := fit(report.Middle(clean(n.instance), room), room) + "  "
		text = id + text
	}
	return line + cut(text, room)
}
