package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/unit"
)

// Series is the rate of a run within numbers of steps.
type Series struct {
	Label  string
	Points []LimitRate
}

// LimitRate is the rate at a limit. Low and High may be NaN if the interval is
// unknown.
type LimitRate struct {
	Steps           int
	Rate, Low, High float64
}

// dashes are the patterns of lines.
var dashes = [...]string{"none", "7 4", "2 3", "10 3 2 3", "4 4", "12 5"}

// ByLimit draws rates within numbers of steps as lines, with a band for the intervals if there is only
// one. A rate stays as it is until the number of steps at which the next attempt is resolved.
func ByLimit(title string, series []Series) template.HTML {
	var drawn []Series
	most, highest := 0, 0.0
	for _, s := range series {
		points := slices.DeleteFunc(slices.Clone(s.Points), func(p LimitRate) bool { return !finite(p.Rate) })
		slices.SortStableFunc(points, func(a, b LimitRate) int { return cmp.Compare(a.Steps, b.Steps) })
		for _, p := range points {
			most = max(most, p.Steps)
			_, highest = span(highest, p.Rate, p.High)
		}
		if len(points) > 0 {
			drawn = append(drawn, Series{s.Label, points})
		}
	}
	if len(drawn) == 0 {
		return ""
	}
	x, xTicks := newScale(0, float64(max(most, 5)), plotLeft, right, 5)
	y, yTicks := newScale(0, min(highest, 1), plotBottom, plotTop, 5)
	var c canvas
	c.vertical(y, yTicks, plotLeft)
	c.horizontal(x, xTicks, plotTop, plotBottom, number)
	legend := float64(plotBottom + 2*line)
	c.text(right, legend-2, "end", "steps", 20)
	var items []string
	for i, s := range drawn {
		curve := stepLine{x: x, y: y}
		var upper strings.Builder
		lower := ""
		for _, p := range s.Points {
			at := number(x.at(float64(p.Steps)))
			curve.to(float64(p.Steps), p.Rate)
			if !finite(p.Low, p.High) {
				continue
			}
			if upper.Len() == 0 {
				fmt.Fprintf(&upper, "M%s %s", at, number(y.at(p.High)))
				lower = fmt.Sprintf("V%sH%sz", number(y.at(p.Low)), at)
				continue
			}
			fmt.Fprintf(&upper, "H%sV%s", at, number(y.at(p.High)))
			lower = fmt.Sprintf("V%sH%s", number(y.at(p.Low)), at) + lower
		}
		if upper.Len() > 0 && len(drawn) == 1 {
			c.add(`<g opacity="0.15">`)
			c.path(colour(i), 0, upper.String()+lower)
			c.add("</g>\n")
		}
		last := s.Points[len(s.Points)-1]
		legend += 1.1 * line
		c.add(`<g stroke-dasharray="%v">`, dashes[(i+i/len(dashes))%len(dashes)])
		c.path(colour(i), 2, curve.d.String()+fmt.Sprintf("M0 %sh40", number(legend-5)))
		c.add("</g>\n")
		shape := shapes[i%len(shapes)]
		c.mark(colour(i), shape, x.at(float64(last.Steps)), y.at(last.Rate), false)
		c.mark(colour(i), shape, 20, legend-5, false)
		numbers := fmt.Sprintf("%s at %d", unit.Percent(last.Rate), last.Steps)
		legend = c.entry(48, legend, s.Label, numbers)
		items = append(items, s.Label+": "+numbers)
	}
	return c.chart("chart", title, items, legend+line/2)
}
