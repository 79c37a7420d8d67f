// Package chart draws charts as SVG. A chart has no number that the page does not
// also show in a table. The shapes of marks differ as well as their colours, which
// are set by classes (see CSS). The functions leave out values that are not finite,
// and return "" if there is nothing to draw. The same data gives the same bytes.
package chart

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/text"
)

// CSS gives the classes of all charts their colours. Those of outcomes, --resolved and so on, are
// the page's. Charts are made for a width
// of 360 px and more; on wide screens their text stays small.
const CSS = `.chart{display:block;width:100%;height:auto;max-width:40rem;--c0:#0064ad;--c1:#ad5200;--c2:#00735a;--c3:#a0307a;--c4:#6554b8;--c5:#6b6600;
--good:#1a7f37;--bad:#c4202b;--warn:#8f5f00;--weak:#5f6872}
.chart.wide{max-width:60rem}.chart.strip{max-width:none;height:1.4rem}
@media (prefers-color-scheme:dark){.chart{--c0:#62b4f2;--c1:#f2a154;--c2:#41cfa1;--c3:#f291c4;--c4:#b5aaf7;--c5:#d6d05c;
--good:#3fb950;--bad:#ff7b72;--warn:#d9a02b;--weak:#9aa4ae}}
@media (min-width:50rem){.chart text{font-size:11px}.chart.wide text{font-size:8px}.small .chart text{font-size:14px}}
.chart .c0{color:var(--c0)}.chart .c1{color:var(--c1)}.chart .c2{color:var(--c2)}
.chart .c3{color:var(--c3)}.chart .c4{color:var(--c4)}.chart .c5{color:var(--c5)}
.chart .more{color:var(--good)}.chart .fewer,.chart .error{color:var(--bad)}.chart .borderline{color:var(--warn)}
.chart .resolved{color:var(--resolved)}.chart .unresolved{color:var(--unresolved)}.chart .limit{color:var(--limit)}
.chart .infra{color:var(--none)}.chart .submitted{color:var(--submitted)}.chart .none{color:var(--line)}
.chart .unclear,.chart .axis{color:var(--weak)}.chart a:hover{opacity:.6}
`

const (
	width      = 480 // of every view box, in units
	fontSize   = 15  // in units: 11 px if the chart is 360 px wide
	charWidth  = 8.3 // of an average character, in units
	digitWidth = 9.6
	right      = width - 12
	line       = 20 // height of a line of text
)

// markup is text that is written as it is. It is only converted from constants
// and from what this package has written.
type markup string

// canvas collects the elements of a chart.
type canvas struct{ b strings.Builder }

// add writes formatted elements. All verbs are %v: numbers are written by number,
// and strings are escaped.
func (c *canvas) add(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case markup:
		case int:
			args[i] = strconv.Itoa(a)
		case float64:
			args[i] = number(a)
		default:
			args[i] = escape(fmt.Sprint(a))
		}
	}
	fmt.Fprintf(&c.b, format, args...)
}

// number formats a number with at most two decimals. It panics if the number is
// not finite, because such a number would make the chart invalid.
func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		panic(fmt.Sprintf("chart: number %v", v))
	}
	s := strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
	if s == "-0" {
		return "0"
	}
	return s
}

// escape makes foreign text safe in elements and attributes, and bounds it.
func escape(s string) string {
	return html.EscapeString(text.Printable(text.ClipRunes(s, 1000)))
}

// text writes a line of text of at most limit columns. A longer one is cut, and
// can be read as the tooltip.
func (c *canvas) text(x, y float64, anchor, s string, limit int) {
	s = text.Printable(text.ClipRunes(s, 1000))
	short := ansi.Truncate(s, max(limit, 1), "…")
	c.add(`<text x="%v" y="%v"`, x, y)
	if anchor != "start" {
		c.add(` text-anchor="%v"`, anchor)
	}
	c.add(`>%v`, short)
	if short != s {
		c.add(`<title>%v</title>`, s)
	}
	c.add("</text>\n")
}

// entry writes a label and, at the right end, a note: in the same line if both have room, otherwise in
// the next one. It returns the y of the note.
func (c *canvas) entry(x, y float64, label, note string) float64 {
	room := columnsIn(width - int(x))
	c.text(x, y, "start", label, room)
	if ansi.StringWidth(label)+ansi.StringWidth(note)+2 > room {
		y += line
	}
	c.text(width, y, "end", note, room)
	return y
}

// columnsIn returns how many columns of text have room in a width.
func columnsIn(units int) int { return int(float64(units) / charWidth) }

// path writes a path that is drawn with lines of the given width, or filled if
// that is 0.
func (c *canvas) path(class string, strokeWidth float64, d string) {
	if d == "" {
		return
	}
	c.add(`<path class="%v" `, class)
	if strokeWidth == 0 {
		c.add(`fill="currentColor" d="%v"/>`+"\n", markup(d))
		return
	}
	c.add(`fill="none" stroke="currentColor" stroke-width="%v" d="%v"/>`+"\n", strokeWidth, markup(d))
}

// The shapes of marks, drawn around the current point.
const (
	circle  = "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z"
	square  = "m-4.5-4.5h9v9h-9z"
	up      = "m0-6 5.5 10h-11z"
	diamond = "m0-6.5 6 6.5-6 6.5-6-6.5z"
	down    = "m0 6 5.5-10h-11z"
	star    = "m-1.5-6h3v4.5h4.5v3h-4.5v4.5h-3v-4.5h-4.5v-3h4.5z"
	toRight = "m6.5 0-11 5.5v-11z"
	toLeft  = "m-6.5 0 11 5.5v-11z"
)

var shapes = [...]string{circle, square, up, diamond, down, star}

// mark writes a mark.
func (c *canvas) mark(class, shape string, x, y float64, hollow bool) {
	strokeWidth := 0.0
	if hollow {
		strokeWidth = 1.5
	}
	c.path(class, strokeWidth, fmt.Sprintf("M%s %s%s", number(x), number(y), shape))
}

// colour returns the class of the i-th colour.
func colour(i int) string { return fmt.Sprintf("c%d", i%len(shapes)) }

// chart returns the finished chart. The description has at most 20 items.
func (c *canvas) chart(class, title string, items []string, height float64) template.HTML {
	if n := len(items); n > 20 {
		items = append(slices.Clone(items[:20]), fmt.Sprintf("and %d more", n-20))
	}
	var s canvas
	s.add(`<svg xmlns="http://www.w3.org/2000/svg" role="img" class="%v" viewBox="0 0 %v %v"`, class, width, height)
	if class == stripClass {
		s.add(` preserveAspectRatio="none"`)
	}
	s.add(` font-family="system-ui, sans-serif" font-size="%v" fill="currentColor">`+"\n", fontSize)
	s.add("<title>%v</title><desc>", title)
	for i, item := range items {
		if i > 0 {
			s.add("; ")
		}
		s.add("%v", item)
	}
	s.add("</desc>\n%v</svg>\n", markup(c.b.String()))
	return template.HTML(s.b.String()) //nolint:gosec // canvas.add escapes all text
}

// scale maps values to positions.
type scale struct {
	low, high  float64 // values
	start, end float64 // their positions
	log        bool
}

// at returns the position of a value. Values outside of the axis are moved to its
// end.
func (s scale) at(v float64) float64 {
	v = min(max(v, s.low), s.high)
	if s.log {
		return s.start + (s.end-s.start)*math.Log(v/s.low)/math.Log(s.high/s.low)
	}
	return s.start + (s.end-s.start)*(v-s.low)/(s.high-s.low)
}

// newScale returns a scale for values from low to high, and its ticks: about n
// round numbers. It extends the scale to ticks.
func newScale(low, high, start, end float64, n int) (scale, []float64) {
	if high-low < 1e-9 {
		high = low + max(math.Abs(low)/10, 0.01)
	}
	step := roundStep((high - low) / float64(n))
	first, last := math.Floor(low/step+1e-9), math.Ceil(high/step-1e-9)
	var ticks []float64
	for i := first; i <= last; i++ {
		ticks = append(ticks, i*step)
	}
	return scale{low: first * step, high: last * step, start: start, end: end}, ticks
}

// roundStep returns the next number above v of the form 1, 2 or 5 times a power of
// ten.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// horizontal draws an axis from left to right below y, with grid lines up to top.
func (c *canvas) horizontal(s scale, ticks []float64, top, y float64, label func(float64) string) {
	c.grid(s, ticks, top, y)
	c.labels(s, ticks, y, label)
}

// grid draws vertical lines at the ticks.
func (c *canvas) grid(s scale, ticks []float64, top, bottom float64) {
	var grid strings.Builder
	for _, v := range ticks {
		fmt.Fprintf(&grid, "M%s %sV%s", number(s.at(v)), number(top), number(bottom))
	}
	c.path("axis", 0.3, grid.String())
}

// labels writes the labels of ticks below y, except those that would overlap, or repeat the one before
// because the format has too few decimals.
func (c *canvas) labels(s scale, ticks []float64, y float64, label func(float64) string) {
	free, previous := 0.0, ""
	for _, v := range ticks {
		text := label(v)
		half := digitWidth * float64(len(text)) / 2
		x := min(max(s.at(v), half), width-half)
		if x-half >= free && text != previous {
			c.text(x, y+fontSize+5, "middle", text, 12)
			free, previous = x+half+digitWidth/2, text
		}
	}
}

// vertical draws an axis of rates left of x, with grid lines up to the right end.
func (c *canvas) vertical(s scale, ticks []float64, x float64) {
	var grid strings.Builder
	for _, v := range ticks {
		fmt.Fprintf(&grid, "M%s %sH%d", number(x), number(s.at(v)), right)
	}
	c.path("axis", 0.3, grid.String())
	for _, v := range ticks {
		c.text(x-6, s.at(v)+5, "end", percent(v), 6)
	}
}

// percent formats a share.
func percent(v float64) string { return number(100*v) + "%" }

// finite reports whether all values can be drawn.
func finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.Abs(v) > 1e12 })
}

// span returns the lowest and the highest of the finite values.
func span(values ...float64) (low, high float64) {
	values = slices.DeleteFunc(values, func(v float64) bool { return !finite(v) })
	if len(values) == 0 {
		return 0, 0
	}
	return slices.MinFunc(values, cmp.Compare[float64]), slices.MaxFunc(values, cmp.Compare[float64])
}
