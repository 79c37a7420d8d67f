package live

import (
	"strconv"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/runner"
)

// columns holds the widths of the table's columns; 0 hides a column.
type columns struct{ number, id, phase, step, time, cost, command int }

const (
	gap        = 2
	phaseWidth = 8
	stepWidth  = 4
	timeWidth  = 6
	costWidth  = 7
)

// idWidth returns the preferred width of the instance column for a screen of width w.
func (b *board) idWidth(w int) int {
	if w < 60 { // too narrow for a command column
		return max(8, min(b.maxNameLen, w-24))
	}
	return max(8, min(b.maxNameLen, 40, (w-36)*55/100))
}

func (b *board) columns(w int) columns {
	c := columns{
		number: len(strconv.Itoa(len(b.workers))), id: b.idWidth(w), phase: phaseWidth, step: stepWidth, time: timeWidth,
	}
	remaining := w - 1 - c.number - gap - gap - c.phase - gap - c.step - gap - c.time
	if remaining < min(c.id, 16) {
		c.step, remaining = 0, remaining+c.step+gap
	}
	if b.spent() > 0 && remaining-c.id >= costWidth+gap+14 {
		c.cost, remaining = costWidth, remaining-costWidth-gap
	}
	c.id = max(1, min(c.id, remaining))
	if remaining -= c.id + gap; remaining >= 8 {
		c.command = remaining
	} else {
		c.id += max(0, remaining)
	}
	return c
}

// tableLines returns the header and the visible rows, starting at row f.top.
func (b *board) tableLines(f frame, l layout) []string {
	if l.rows == 0 {
		return nil
	}
	c := b.columns(f.width)
	header := c.join([]string{
		terminal.PadLeft("#", c.number), terminal.PadRight("instance", c.id), terminal.PadRight("doing", c.phase),
		terminal.PadLeft("step", c.step), terminal.PadLeft("for", c.time), terminal.PadLeft("cost", c.cost),
		terminal.Truncate("command", c.command),
	})
	lines := []string{steps.Faint(terminal.Truncate(" "+header, f.width))}
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
	marker := " "
	if w.name != "" && w.name == f.selected {
		marker = selectionMarker
	}
	number := steps.Faint(terminal.PadLeft(strconv.Itoa(i+1), c.number))
	if w.name == "" {
		return " " + c.join([]string{number, terminal.PadRight("", c.id), styledPhase("", false, c.phase)})
	}
	step := ""
	if w.step > 0 {
		step = strconv.Itoa(w.step)
	}
	command := terminal.Truncate(sanitizeLine(w.command), c.command)
	switch {
	case w.phase == runner.PhaseQueued:
		command = steps.Faint(terminal.Truncate(sanitizeLine(w.reason), c.command))
	case w.command == "" && w.attempt > 1:
		command = steps.Faint(terminal.Truncate("attempt "+strconv.Itoa(w.attempt), c.command))
	case w.phase == runner.PhaseStarting && w.image != "":
		command = steps.Faint(table.TruncateMiddle(sanitizeLine(w.image), c.command))
	case !w.isRunning:
		command = steps.Faint(command)
	}
	return marker + c.join([]string{
		number, terminal.PadRight(table.TruncateMiddle(sanitizeLine(w.name), c.id), c.id),
		styledPhase(w.phase, b.isPulling(w.image), c.phase), terminal.PadLeft(step, c.step),
		steps.Faint(terminal.PadLeft(formatElapsed(f.now.Sub(w.phaseStart)), c.time)),
		terminal.PadLeft(formatDollars(w.cost), c.cost), command,
	})
}

// join joins the cells of the visible columns.
func (c columns) join(cells []string) string {
	line := ""
	for i, w := range []int{c.number, c.id, c.phase, c.step, c.time, c.cost, c.command} {
		if w == 0 || i >= len(cells) {
			continue
		}
		if line != "" {
			line += "  "
		}
		line += cells[i]
	}
	return line
}
