package live

import (
	"strconv"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/runner"
)

// columns holds the widths of a row's columns; 0 hides a column.
type columns struct{ number, id, phase, step, time, cost, command int }

const (
	gap        = 2
	phaseWidth = 8
	stepWidth  = 4
	timeWidth  = 6
	costWidth  = 7
)

// idWidth returns the width of the instance column for a screen of width w.
func (b *board) idWidth(w int) int {
	if w < 60 { // too narrow for a command column
		return max(8, min(b.maxNameWidth, w-24))
	}
	return max(8, min(b.maxNameWidth, 40, (w-36)*55/100))
}

func (b *board) columns(w int) columns {
	c := columns{number: len(strconv.Itoa(len(b.workers))), phase: phaseWidth, step: stepWidth, time: timeWidth, id: b.idWidth(w)}
	rest := w - 1 - c.number - gap - gap - c.phase - gap - c.step - gap - c.time
	if rest < min(c.id, 16) {
		c.step, rest = 0, rest+c.step+gap
	}
	if b.spent() > 0 && rest-c.id >= costWidth+gap+14 {
		c.cost, rest = costWidth, rest-costWidth-gap
	}
	c.id = max(1, min(c.id, rest))
	if rest -= c.id + gap; rest >= 8 {
		c.command = rest
	} else {
		c.id += max(0, rest)
	}
	return c
}

// tableLines returns the header and the visible rows, starting at row f.top.
func (b *board) tableLines(f frame, l layout) []string {
	if l.rows == 0 {
		return nil
	}
	c := b.columns(f.width)
	head := c.join([]string{
		padLeft("#", c.number), padRight("instance", c.id), padRight("doing", c.phase), padLeft("step", c.step),
		padLeft("for", c.time), padLeft("cost", c.cost), truncate("command", c.command),
	})
	lines := []string{steps.Faint(truncate(" "+head, f.width))}
	if f.height-3 < 3 {
		lines = nil
	}
	top := f.clamp(f.top, len(b.workers))
	for i := top; i < min(top+l.rows, len(b.workers)); i++ {
		lines = append(lines, b.rowLine(i, c, f))
	}
	return lines
}

// selectionMarker precedes the selected instance.
const selectionMarker = "▸"

func (b *board) rowLine(i int, c columns, f frame) string {
	w := b.workers[i]
	lead := " "
	if w.name != "" && w.name == f.selected {
		lead = selectionMarker
	}
	number := steps.Faint(padLeft(strconv.Itoa(i+1), c.number))
	if w.name == "" {
		return " " + c.join([]string{number, padRight("", c.id), styledPhase("", false, c.phase)})
	}
	step := ""
	if w.step > 0 {
		step = strconv.Itoa(w.step)
	}
	command := truncate(sanitizeLine(w.command), c.command)
	switch {
	case w.command == "" && w.attempt > 1:
		command = steps.Faint(truncate("attempt "+strconv.Itoa(w.attempt), c.command))
	case w.phase == runner.Starting && w.image != "":
		command = steps.Faint(table.TruncateMiddle(sanitizeLine(w.image), c.command))
	case !w.isRunning:
		command = steps.Faint(command)
	}
	return lead + c.join([]string{
		number, padRight(table.TruncateMiddle(sanitizeLine(w.name), c.id), c.id),
		styledPhase(w.phase, b.isPulling(w.image), c.phase), padLeft(step, c.step),
		steps.Faint(padLeft(formatElapsed(f.now.Sub(w.phaseStart)), c.time)), padLeft(formatDollars(w.cost), c.cost), command,
	})
}

// join joins the cells of the visible columns.
func (c columns) join(parts []string) string {
	line := ""
	for i, w := range []int{c.number, c.id, c.phase, c.step, c.time, c.cost, c.command} {
		if w == 0 || i >= len(parts) {
			continue
		}
		if line != "" {
			line += "  "
		}
		line += parts[i]
	}
	return line
}
