package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/unit"
)

// Part is a part of a bar. Style is the name of a class or "c0" to "c5".
type Part struct {
	Style string
	Size  float64
}

// Bar is a bar of parts with texts above its left and its right end.
type Bar struct {
	Label, Note string
	Parts       []Part
}

// stripClass is the class of a chart that is as wide as the page and has a height of its own.
const stripClass = "chart strip"

// Strip draws a single bar without texts, as wide as the page.
func Strip(title string, parts []Part) template.HTML {
	var c canvas
	const height = 10
	items := c.parts(parts, sum(parts), 0, height)
	if len(items) == 0 {
		return ""
	}
	return c.chart(stripClass, title, items, height)
}

// Bars draws bars below each other, on one scale.
func Bars(title string, bars []Bar) template.HTML {
	most := 0.0
	for _, b := range bars {
		most = max(most, sum(b.Parts))
	}
	if most == 0 {
		return ""
	}
	const rowHeight = 34
	var c canvas
	var items []string
	for i, b := range bars {
		y := float64(rowHeight * i)
		c.text(0, y+fontSize, "start", b.Label, columnsIn(width)-ansi.StringWidth(b.Note)-2)
		c.text(width, y+fontSize, "end", b.Note, columnsIn(width)-8)
		c.parts(b.Parts, most, y+fontSize+5, 8)
		items = append(items, b.Label+": "+b.Note)
	}
	return c.chart("chart", title, items, float64(rowHeight*len(bars)))
}

// parts draws the parts of a bar side by side. It returns a description of each.
func (c *canvas) parts(parts []Part, most, y, height float64) (items []string) {
	x := 0.0
	for _, p := range parts {
		if !finite(p.Size) || p.Size <= 0 || most <= 0 {
			continue
		}
		w := p.Size / most * width
		c.path(p.Style, 0, fmt.Sprintf("M%s %sh%sv%sh-%sz", number(x), number(y), number(max(w-1, 0.5)), number(height), number(max(w-1, 0.5))))
		x += w
		items = append(items, fmt.Sprintf("%s %s", p.Style, number(p.Size)))
	}
	return items
}

func sum(parts []Part) (total float64) {
	for _, p := range parts {
		if finite(p.Size) {
			total += max(p.Size, 0)
		}
	}
	return total
}

// Sample is a value of an attempt.
type Sample struct {
	Value float64
	Class Class
}

// Histogram draws how many attempts have values of each size, by class. The last column has also
// the values far beyond the others. It draws nothing if all values are 0.
func Histogram(title string, samples []Sample, format func(float64) string) template.HTML {
	samples = slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return !finite(s.Value) || s.Value < 0 })
	slices.SortStableFunc(samples, func(a, b Sample) int { return cmp.Compare(a.Value, b.Value) })
	if len(samples) == 0 || samples[len(samples)-1].Value == 0 {
		return ""
	}
	high := samples[len(samples)-1].Value
	if p := samples[(len(samples)-1)*95/100].Value; p > 0 && high > 3*p {
		high = 1.5 * p
	}
	if !slices.ContainsFunc(samples, func(s Sample) bool { return s.Value != math.Trunc(s.Value) }) {
		high = max(high, 10) // counts have no halves
	}
	const top, bottom, left = 18.0, 118.0, 30.0
	x, ticks := newScale(0, high, left, right, 10)
	step := ticks[1]
	bins := make([]map[Class]int, len(ticks)-1)
	most, beyond := 0, 0
	for _, s := range samples {
		i := int(s.Value/step + 1e-9)
		if i >= len(bins) {
			if s.Value > x.high {
				beyond++
			}
			i = len(bins) - 1
		}
		if bins[i] == nil {
			bins[i] = map[Class]int{}
		}
		bins[i][s.Class.look().class]++
	}
	var items []string
	for i, bin := range bins {
		n := 0
		for _, count := range bin {
			n += count
		}
		most = max(most, n)
		if n > 0 {
			items = append(items, fmt.Sprintf("from %s: %d", format(ticks[i]), n))
		}
	}
	var c canvas
	c.path("axis", 0.6, fmt.Sprintf("M%s %sH%d", number(left), number(bottom), right))
	c.text(left-6, top+6, "end", fmt.Sprint(most), 6)
	c.text(left-6, bottom, "end", "0", 6)
	tall := make([]float64, len(bins))
	for _, class := range Classes() {
		var d strings.Builder
		for i, bin := range bins {
			if bin[class] == 0 {
				continue
			}
			h := float64(bin[class]) / float64(most) * (bottom - top)
			at, end := x.at(ticks[i])+1, x.at(ticks[i+1])-1
			fmt.Fprintf(&d, "M%s %sH%sv%sH%sz", number(at), number(bottom-tall[i]), number(end), number(-h), number(at))
			tall[i] += h
		}
		c.path(class.look().style, 0, d.String())
	}
	c.labels(x, ticks, bottom, format)
	height := bottom + 1.4*line
	if beyond > 0 {
		c.text(right, top-4, "end", fmt.Sprintf("last column: also %d beyond, up to %s", beyond, format(samples[len(samples)-1].Value)), columnsIn(width)-8)
	}
	return c.chart("chart", title, items, height)
}

// Event is the end of an attempt, in seconds since the start.
type Event struct {
	At    float64
	Class Class
}

// Progress draws the number of attempts that had ended, and of those that are resolved, over time.
func Progress(title string, events []Event) template.HTML {
	events = slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return !finite(e.At) || e.At < 0 })
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	if len(events) == 0 {
		return ""
	}
	const top, bottom, left = 18.0, 118.0, 40.0
	end := max(events[len(events)-1].At, 1)
	x := scale{low: 0, high: end, start: left, end: right}
	y := scale{low: 0, high: float64(len(events)), start: bottom, end: top}
	var c canvas
	c.horizontal(x, timeTicks(end), top, bottom, unit.Seconds)
	c.text(left-6, top+6, "end", fmt.Sprint(len(events)), 6)
	ended, resolved := stepLine{x: x, y: y}, stepLine{x: x, y: y}
	good := 0
	for i, e := range events {
		ended.to(e.At, float64(i+1))
		if e.Class == Resolved {
			good++
			resolved.to(e.At, float64(good))
		}
	}
	resolved.to(end, float64(good))
	c.path("none", 2, ended.d.String())
	c.path("resolved", 2, resolved.d.String())
	text := fmt.Sprintf("%d ended, %d resolved, %s an hour", len(events), good, number(math.Round(float64(len(events))/end*3600)))
	c.text(right, top-4, "end", text, columnsIn(width)-8)
	return c.chart("chart", title, []string{text}, bottom+1.4*line)
}

// stepLine is a line that keeps its value until the next point.
type stepLine struct {
	x, y scale
	d    strings.Builder
}

// to goes right to a position, and there to a value.
func (s *stepLine) to(at, value float64) {
	if s.d.Len() == 0 {
		fmt.Fprintf(&s.d, "M%s %s", number(s.x.start), number(s.y.start))
	}
	fmt.Fprintf(&s.d, "H%sV%s", number(s.x.at(at)), number(s.y.at(value)))
}
