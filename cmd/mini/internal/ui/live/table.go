package live

import (
	"fmt"
	"strconv"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
)

// columns holds the widths of the table's columns; 0 hides a column.
type columns struct{ number, id, phase, step, time, cost, command int }

const (
	gap        = 2
	phaseWidth = 8
	stepWidth  = 4
	timeWidth  = 6
	costWidth  = 8
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
		number: len(strconv.Itoa(len(b.Workers))), id: b.idWidth(w), phase: phaseWidth, step: stepWidth, time: timeWidth,
	}
	remaining := w - 1 - c.number - gap - gap - c.phase - gap - c.step - gap - c.time
	if remaining < min(c.id, 16) {
		c.step, remaining = 0, remaining+c.step+gap
	}
	if b.Spent > 0 && remaining-c.id >= costWidth+gap+14 {
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
	top := f.clamp(f.top, len(b.Workers))
	for i := top; i < min(top+l.rows, len(b.Workers)); i++ {
		lines = append(lines, b.rowLine(i, c, f))
	}
	return lines
}

// selectionMarker precedes the selected instance.
const selectionMarker = "▸"

func (b *board) rowLine(i int, c columns, f frame) string {
	t := b.Workers[i]
	number := steps.Faint(terminal.PadLeft(strconv.Itoa(i+1), c.number))
	if t == nil {
		return " " + c.join([]string{number, terminal.PadRight("", c.id), styledPhase("", false, c.phase)})
	}
	marker := " "
	if t.ID == f.selected {
		marker = selectionMarker
	}
	step := ""
	if t.Step > 0 {
		step = strconv.Itoa(t.Step)
	}
	cost := formatDollars(t.Cost)
	if t.Ended {
		cost = ""
	}
	return marker + c.join([]string{
		number, terminal.PadRight(table.TruncateMiddle(sanitizeLine(t.ID), c.id), c.id),
		styledPhase(t.Phase, b.IsPulling(t.Image), c.phase), terminal.PadLeft(step, c.step),
		steps.Faint(terminal.PadLeft(unit.Duration(f.now.Sub(t.PhaseStart).Truncate(time.Second)), c.time)),
		terminal.PadLeft(cost, c.cost), commandCell(t, c.command),
	})
}

// commandCell shows the running command, or faintly the last command or what the task waits for.
func commandCell(t *batch.Task, width int) string {
	command := sanitizeLine(t.Command)
	if t.Reruns > 0 {
		command = sanitizeLine(fmt.Sprintf("%d of %d  %s", t.Rerun, t.Reruns, t.Command))
	}
	switch {
	case t.Phase == runner.PhaseQueued:
		command = sanitizeLine(t.Reason)
	case t.Command == "" && t.Attempt > 1:
		command = "attempt " + strconv.Itoa(t.Attempt)
	case t.Phase == runner.PhaseStarting && t.Image != "":
		return steps.Faint(table.TruncateMiddle(sanitizeLine(t.Image), width))
	case t.IsRunning():
		return terminal.Truncate(command, width)
	}
	return steps.Faint(terminal.Truncate(command, width))
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
