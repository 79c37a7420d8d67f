package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/unit"
)

// Step is a step of an attempt. Times are in seconds.
type Step struct {
	Start          float64 // since the start of the attempt
	Model, Command float64 // durations, one after the other
	Tokens         float64 // of this step
	Cost           float64 // of this step, in US dollars; NaN if unknown
	Failed         bool    // the command failed
}

// Mark is an event with a name, such as the first edit.
type Mark struct {
	Label string
	At    float64 // seconds since the start of the attempt
}

// maxBars is the number of steps up to which each has bars of its own.
const maxBars = 1000

// Timeline draws when an attempt waited for the model and when its commands ran,
// with tokens and cost below. More than 1,000 steps are drawn in groups.
func Timeline(title string, steps []Step, marks []Mark) template.HTML {
	steps = slices.DeleteFunc(slices.Clone(steps), func(s Step) bool {
		return !finite(s.Start, s.Model, s.Command, s.Tokens) || min(s.Start, s.Model, s.Command) < 0
	})
	if len(steps) == 0 {
		return ""
	}
	marks = slices.DeleteFunc(slices.Clone(marks), func(m Mark) bool { return !finite(m.At) })
	slices.SortStableFunc(marks, func(a, b Mark) int { return cmp.Compare(a.At, b.At) })
	count := len(steps)
	steps, size := grouped(steps)
	end := 0.0
	for _, s := range steps {
		end = max(end, s.Start+s.Model+s.Command)
	}
	const left, modelLane, commandLane, tokenLane, costLane = 84, 36, 60, 130, 174
	x := scale{low: 0, high: max(end, 1), start: left, end: right}
	var model, command, failed strings.Builder
	var modelTime, commandTime float64
	failures := 0
	for _, s := range steps {
		bar(&model, x, s.Start, s.Model, modelLane)
		bar(&command, x, s.Start+s.Model, s.Command, commandLane)
		modelTime, commandTime = modelTime+s.Model, commandTime+s.Command
		if s.Failed && size == 1 {
			failures++
			fmt.Fprintf(&failed, "M%s %dv6", number(x.at(s.Start+s.Model)), commandLane+11)
		}
	}
	var c canvas
	c.horizontal(x, timeTicks(x.high), 24, costLane, unit.Seconds)
	c.text(0, modelLane+5, "start", "model", 9)
	c.text(0, commandLane+5, "start", "command", 9)
	c.path("c0", 18, model.String())
	c.path("c1", 18, command.String())
	c.path("error", 1.5, failed.String())
	c.sum("c2", "tokens", steps, x, tokenLane, func(s Step) float64 { return s.Tokens }, func(n float64) string { return unit.Count(int64(n)) })
	c.sum("c3", "cost", steps, x, costLane, func(s Step) float64 { return s.Cost }, unit.Money)
	free := 0.0
	for i, m := range marks {
		at := x.at(m.At)
		free = min(max(at, free), width-charWidth)
		c.text(free, fontSize-1, "middle", strconv.Itoa(i+1), 4)
		c.path("axis", 1, fmt.Sprintf("M%s 16L%s 24V%d", number(free), number(at), costLane))
		free += 1.5 * charWidth
	}

	items := []string{fmt.Sprintf("model %s, command %s of %s", unit.Seconds(modelTime), unit.Seconds(commandTime), unit.Seconds(end))}
	if failures > 0 {
		items = append(items, fmt.Sprintf("lines below the commands: %d failed", failures))
	}
	if size > 1 {
		items = append(items, fmt.Sprintf("%d steps, drawn in groups of %d", count, size))
	}
	for i, m := range marks {
		items = append(items, fmt.Sprintf("%d at %s: %s", i+1, unit.Seconds(m.At), m.Label))
	}
	y := float64(costLane + line)
	for _, item := range items {
		y += line
		c.text(0, y, "start", item, columnsIn(width))
	}
	return c.chart("chart wide", title, items, y+8)
}

// grouped adds up steps if there are more than maxBars. It returns the size of the
// groups.
func grouped(steps []Step) ([]Step, int) {
	size := (len(steps) + maxBars - 1) / maxBars
	if size == 1 {
		return steps, 1
	}
	var groups []Step
	for group := range slices.Chunk(steps, size) {
		sum := group[0]
		for _, s := range group[1:] {
			sum.Model += s.Model
			sum.Command += s.Command
			sum.Tokens += s.Tokens
			switch {
			case !finite(sum.Cost):
				sum.Cost = s.Cost
			case finite(s.Cost):
				sum.Cost += s.Cost
			}
		}
		groups = append(groups, sum)
	}
	return groups, size
}

// bar adds a bar to the path of a lane. Bars that would be invisible are widened.
func bar(b *strings.Builder, x scale, start, seconds, lane float64) {
	if seconds > 0 {
		fmt.Fprintf(b, "M%s %sh%s", number(x.at(start)), number(lane), number(max(x.at(start+seconds)-x.at(start), 0.3)))
	}
}

// sum draws a running sum above y. It leaves out values that are unknown.
func (c *canvas) sum(
	class, name string, steps []Step, x scale, y float64, value func(Step) float64, format func(float64) string,
) {
	total := 0.0
	sums := make([]float64, len(steps))
	known := false
	for i, s := range steps {
		if v := value(s); finite(v) {
			total += max(v, 0)
			known = true
		}
		sums[i] = total
	}
	c.text(0, y-18, "start", name, 9)
	if !known {
		c.text(0, y-1, "start", "unknown", 9)
		return
	}
	c.text(0, y-1, "start", format(total), 9)
	up := scale{low: 0, high: max(total, 1e-9), start: y, end: y - 34}
	var d strings.Builder
	fmt.Fprintf(&d, "M%s %s", number(x.start), number(y))
	for i, s := range steps {
		fmt.Fprintf(&d, "L%s %s", number(x.at(s.Start+s.Model)), number(up.at(sums[i])))
	}
	c.path(class, 2, d.String())
}

// timeTicks returns the ticks of an axis of seconds.
func timeTicks(end float64) []float64 {
	step := 1.0
	for _, s := range []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 6 * 3600, 12 * 3600, 24 * 3600} {
		step = s
		if end/step <= 6 {
			break
		}
	}
	if end/step > 6 {
		step = roundStep(end/step/6) * step
	}
	var ticks []float64
	for v := 0.0; v <= end; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}
