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
	Name           string  // for people, such as "step 3"
	Anchor         string  // name of the step in Link
	Link           string  // address; "" for none
	Start          float64 // since the start of the attempt
	Model, Command float64 // durations, one after the other
	Tokens         float64 // of this step
	Cost           float64 // of this step, in US dollars; NaN if unknown
	Failed         bool    // the command failed
}

// Span is a time in which mini worked on the sandbox, such as its start.
type Span struct {
	Name           string
	Start, Seconds float64
}

// Mark is an event, such as the first edit. Number is its number in the list of the page.
type Mark struct {
	Number int
	At     float64 // seconds since the start of the attempt
}

// Limits of a timeline.
const (
	maxBars  = 1000 // steps up to which each has bars of its own
	maxLinks = 300  // steps up to which each is a link
)

// Timeline draws when mini worked on the sandbox, the attempt waited for the model and its commands
// ran, with tokens and cost below as far as they are known. More than 1,000 steps are drawn in
// groups.
func Timeline(title string, steps []Step, spans []Span, marks []Mark) template.HTML {
	steps = slices.DeleteFunc(slices.Clone(steps), func(s Step) bool {
		return !finite(s.Start, s.Model, s.Command, s.Tokens) || min(s.Start, s.Model, s.Command) < 0
	})
	spans = slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return !finite(s.Start, s.Seconds) || s.Start < 0 || s.Seconds <= 0 })
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
	for _, s := range spans {
		end = max(end, s.Start+s.Seconds)
	}
	const left, sandboxLane, modelLane, commandLane = 84, 36, 58, 80
	x := scale{low: 0, high: max(end, 1), start: left, end: right}
	var sandbox, model, command, failed strings.Builder
	var modelTime, commandTime float64
	failures := 0
	for _, s := range spans {
		bar(&sandbox, x, s.Start, s.Seconds, sandboxLane)
	}
	for _, s := range steps {
		bar(&model, x, s.Start, s.Model, modelLane)
		bar(&command, x, s.Start+s.Model, s.Command, commandLane)
		modelTime, commandTime = modelTime+s.Model, commandTime+s.Command
		if s.Failed && size == 1 {
			failures++
			fmt.Fprintf(&failed, "M%s %dv6", number(x.at(s.Start+s.Model)), commandLane+10)
		}
	}
	sums := []running{
		{"c2", "tokens", func(s Step) float64 { return s.Tokens }, func(n float64) string { return unit.Count(int64(n)) }},
		{"c3", "cost", func(s Step) float64 { return s.Cost }, unit.Money},
	}
	sums = slices.DeleteFunc(sums, func(r running) bool { return !r.isKnown(steps) })
	bottom := commandLane + 18 + 44*len(sums)
	var c canvas
	c.horizontal(x, timeTicks(x.high), 24, float64(bottom), unit.Seconds)
	c.text(0, sandboxLane+5, "start", "sandbox", 9)
	c.text(0, modelLane+5, "start", "model", 9)
	c.text(0, commandLane+5, "start", "command", 9)
	c.path("c4", 16, sandbox.String())
	c.path("c0", 16, model.String())
	c.path("c1", 16, command.String())
	c.path("error", 1.5, failed.String())
	for i, r := range sums {
		c.running(r, steps, x, float64(commandLane+18+44*(i+1)))
	}
	c.links(steps, x, modelLane-9, commandLane+9)
	free := 0.0
	for _, m := range marks {
		at := x.at(m.At)
		free = min(max(at, free), width-charWidth)
		c.text(free, fontSize-1, "middle", strconv.Itoa(m.Number), 4)
		c.path("axis", 1, fmt.Sprintf("M%s 16L%s 24V%d", number(free), number(at), bottom))
		free += 1.5 * charWidth
	}

	var parts []string
	for _, s := range spans {
		parts = append(parts, s.Name+" "+unit.Seconds(s.Seconds))
	}
	items := []string{fmt.Sprintf("model %s, commands %s of %s", unit.Seconds(modelTime), unit.Seconds(commandTime), unit.Seconds(end))}
	if len(parts) > 0 {
		items = append(items, "sandbox: "+strings.Join(parts, ", "))
	}
	if failures > 0 {
		items = append(items, fmt.Sprintf("red lines below the commands: %d failed", failures))
	}
	if size > 1 {
		items = append(items, fmt.Sprintf("%d steps, drawn in groups of %d", count, size))
	}
	y := float64(bottom + line)
	for _, item := range items {
		y += line
		c.text(0, y, "start", item, columnsIn(width))
	}
	return c.chart("chart wide", title, items, y+8)
}

// links covers the bars of each step with a link to it.
func (c *canvas) links(steps []Step, x scale, top, bottom int) {
	if len(steps) > maxLinks {
		return
	}
	for _, s := range steps {
		if s.Link == "" {
			continue
		}
		at := x.at(s.Start)
		c.add(`<a href="%v" data-step="%v" tabindex="-1" aria-label="%v"><rect x="%v" y="%v" width="%v" height="%v" fill="transparent"><title>%v: model %v, commands %v</title></rect></a>`+"\n",
			s.Link, s.Anchor, s.Name, at, top, max(x.at(s.Start+s.Model+s.Command)-at, 1), bottom-top,
			s.Name, unit.Seconds(s.Model), unit.Seconds(s.Command))
	}
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

// running is a sum that grows with the steps.
type running struct {
	class, name string
	value       func(Step) float64
	format      func(float64) string
}

// isKnown reports whether a step has a value that is not 0.
func (r running) isKnown(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return finite(r.value(s)) && r.value(s) > 0 })
}

// running draws a sum above y, which grows when the model has replied. It leaves out values that are
// unknown.
func (c *canvas) running(r running, all []Step, x scale, y float64) {
	total := 0.0
	for _, s := range all {
		if v := r.value(s); finite(v) {
			total += max(v, 0)
		}
	}
	line := stepLine{x: x, y: scale{low: 0, high: total, start: y, end: y - 30}}
	sum := 0.0
	for _, s := range all {
		if v := r.value(s); finite(v) {
			sum += max(v, 0)
			line.to(s.Start+s.Model, sum)
		}
	}
	c.text(0, y-16, "start", r.name, 9)
	c.text(0, y, "start", r.format(total), 9)
	c.path(r.class, 2, line.d.String()+fmt.Sprintf("H%d", right))
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
