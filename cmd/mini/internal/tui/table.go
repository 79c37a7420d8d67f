package tui

import (
	"strconv"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
)

// columns are the widths of a row's parts; 0 leaves a part out.
type columns struct{ number, id, phase, step, time, cost, command int }

const (
	gap       = 2
	phaseWide = 8
	stepWide  = 4
	timeWide  = 6
	costWide  = 7
)

// idWidth is the room for an id: what the ids so far need, within what the
// screen can give.
func (b *board) idWidth(w int) int {
	if w < 60 { // there is no room for a command beside it
		return max(8, min(b.widest, w-24))
	}
	return max(8, min(b.widest, 40, (w-36)*55/100))
}

func (b *board) columns(w int) columns {
	c := columns{number: len(strconv.Itoa(len(b.workers))), phase: phaseWide, step: stepWide, time: timeWide, id: b.idWidth(w)}
	rest := w - 1 - c.number - gap - gap - c.phase - gap - c.step - gap - c.time
	if rest < min(c.id, 16) {
		c.step, rest = 0, rest+c.step+gap
	}
	if b.spent() > 0 && rest-c.id >= costWide+gap+14 {
		c.cost, rest = costWide, rest-costWide-gap
	}
	c.id = max(1, min(c.id, rest))
	if rest -= c.id + gap; rest >= 8 {
		c.command = rest
	} else {
		c.id += max(0, rest)
	}
	return c
}

// table is the head of the columns and the rows from f.top on.
func (b *board) table(f frame, l layout) []string {
	if l.rows == 0 {
		return nil
	}
	c := b.columns(f.width)
	head := c.join([]string{
		right("#", c.number), fit("instance", c.id), fit("doing", c.phase), right("step", c.step),
		right("for", c.time), right("cost", c.cost), cut("command", c.command),
	})
	lines := []string{steps.Faint(cut(" "+head, f.width))}
	if f.height-3 < 3 {
		lines = nil
	}
	top := f.clamp(f.top, len(b.workers))
	for i := top; i < min(top+l.rows, len(b.workers)); i++ {
		lines = append(lines, b.row(i, c, f))
	}
	return lines
}

// marker is in front of the instance that keys are about.
const marker = "▸"

func (b *board) row(i int, c columns, f frame) string {
	w := b.workers[i]
	lead := " "
	if w.instance != "" && w.instance == f.picked {
		lead = marker
	}
	number := steps.Faint(right(strconv.Itoa(i+1), c.number))
	if w.instance == "" {
		return " " + c.join([]string{number, fit("", c.id), phaseStyled("", false, c.phase)})
	}
	step := ""
	if w.step > 0 {
		step = strconv.Itoa(w.step)
	}
	command := cut(clean(w.command), c.command)
	switch {
	case w.command == "" && w.attempt > 1:
		command = steps.Faint(cut("attempt "+strconv.Itoa(w.attempt), c.command))
	case w.phase == runner.Starting && w.image != "":
		command = steps.Faint(report.Middle(clean(w.image), c.command))
	case !w.current:
		command = steps.Faint(command)
	}
	return lead + c.join([]string{
		number, fit(report.Middle(clean(w.instance), c.id), c.id),
		phaseStyled(w.phase, b.pulling(w.image), c.phase), right(step, c.step),
		steps.Faint(right(short(f.now.Sub(w.since)), c.time)), right(dollars(w.cost), c.cost), command,
	})
}

// join puts the parts that have a width side by side.
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
