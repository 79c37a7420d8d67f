package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"

	"github.com/minibench/mini/internal/unit"
)

// Point is the cost and the rate of a run. The ends of an interval may be NaN if
// the interval is unknown.
type Point struct {
	Label                   string
	Cost, CostLow, CostHigh float64 // US dollars per instance
	Rate, RateLow, RateHigh float64 // between 0 and 1
	Frontier                bool    // no other run dominates it
}

const (
	plotLeft   = 52
	plotTop    = 10
	plotBottom = 270
)

// minCost is the smallest cost that is drawn, in dollars.
const minCost = 1e-9

// CostRate draws the rates of runs over their costs. Points on the frontier are
// filled and connected, others are hollow. The axis of costs is logarithmic if the
// largest is more than 30 times the smallest.
func CostRate(title string, points []Point) template.HTML {
	points = slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !finite(p.Cost, p.Rate) || p.Cost < 0 })
	for i := range points { // a cost that no axis can show is 0
		if points[i].Cost < minCost {
			points[i].Cost = 0
		}
	}
	if len(points) == 0 {
		return ""
	}
	var rates, costs, means []float64
	for _, p := range points {
		rates = append(rates, p.Rate, p.RateLow, p.RateHigh)
		costs = append(costs, p.Cost, p.CostLow, p.CostHigh)
		means = append(means, p.Cost)
	}
	_, high := span(rates...)
	y, yTicks := newScale(0, min(high, 1), plotBottom, plotTop, 5)
	_, high = span(costs...)
	x, xTicks := newScale(0, high, plotLeft, right, 4)
	label := "cost per instance"
	if low, most := span(means...); low > 0 && most > 30*low {
		x = scale{low: low / 1.5, high: high * 1.2, start: plotLeft, end: right, log: true}
		xTicks, label = powers(x), label+", logarithmic"
	}
	var c canvas
	c.vertical(y, yTicks, plotLeft)
	c.horizontal(x, xTicks, plotTop, plotBottom, unit.MoneyColumn(xTicks[min(1, len(xTicks)-1)]))
	money := unit.MoneyColumn(means...)
	c.frontier(points, x, y)
	var placed [][2]float64
	for _, p := range points {
		placed = append(placed, [2]float64{x.at(p.Cost), y.at(p.Rate)})
	}
	var items []string
	legend := float64(plotBottom + 2*line)
	c.text(right, legend-2, "end", label, 40)
	for i, p := range points {
		px, py := placed[i][0], placed[i][1]
		var bars string
		if finite(p.CostLow, p.CostHigh) {
			bars += fmt.Sprintf("M%s %sH%s", number(x.at(p.CostLow)), number(py), number(x.at(p.CostHigh)))
		}
		if finite(p.RateLow, p.RateHigh) {
			bars += fmt.Sprintf("M%s %sV%s", number(px), number(y.at(p.RateLow)), number(y.at(p.RateHigh)))
		}
		c.path(colour(i), 1.2, bars)
		c.mark(colour(i), shapes[i%len(shapes)], px, py, !p.Frontier)
		at := besides(placed, px, py)
		placed = append(placed, at)
		c.text(at[0], at[1]+5, "middle", strconv.Itoa(i+1), 4)

		legend += 1.1 * line
		c.mark(colour(i), shapes[i%len(shapes)], 36, legend-5, !p.Frontier)
		c.text(26, legend, "end", strconv.Itoa(i+1), 4)
		numbers := unit.Percent(p.Rate) + ", " + money(p.Cost)
		legend = c.entry(48, legend, p.Label, numbers)
		items = append(items, p.Label+": "+numbers)
	}
	c.text(48, legend+1.1*line, "start", "filled: best value; hollow: another run is better", 50)
	return c.chart("chart", title, items, legend+1.6*line)
}

// frontier draws the line that connects the points on the frontier.
func (c *canvas) frontier(points []Point, x, y scale) {
	points = slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !p.Frontier })
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Cost, b.Cost) })
	d := ""
	for _, p := range points {
		if d == "" {
			d = fmt.Sprintf("M%s %s", number(x.at(p.Cost)), number(y.at(p.Rate)))
			continue
		}
		d += fmt.Sprintf("H%sV%s", number(x.at(p.Cost)), number(y.at(p.Rate)))
	}
	if len(points) > 1 {
		c.add(`<g stroke-dasharray="5 4">`)
		c.path("axis", 1.5, d)
		c.add("</g>\n")
	}
}

// powers returns ticks of a logarithmic axis: powers of ten, and, if these are few,
// two and five times them.
func powers(s scale) []float64 {
	var tens, all []float64
	for e := math.Floor(math.Log10(s.low)); e <= math.Log10(s.high); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v < s.low || v > s.high {
				continue
			}
			all = append(all, v)
			if m == 1 {
				tens = append(tens, v)
			}
		}
	}
	if len(tens) >= 3 {
		return tens
	}
	return all
}

// besides returns a place near a point for its number that is away from the places
// that are taken, or the last one tried.
func besides(taken [][2]float64, x, y float64) (place [2]float64) {
	for _, offset := range [][2]float64{{12, -10}, {12, 12}, {-12, -10}, {-12, 12}, {24, 0}, {-24, 0}, {0, -22}, {0, 24}} {
		place = [2]float64{min(max(x+offset[0], plotLeft), width-8), max(y+offset[1], 8)}
		if !slices.ContainsFunc(taken, func(t [2]float64) bool {
			return math.Abs(t[0]-place[0]) < 12 && math.Abs(t[1]-place[1]) < 10
		}) {
			break
		}
	}
	return place
}
