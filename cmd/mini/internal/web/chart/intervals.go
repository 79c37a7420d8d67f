package chart

import (
	"fmt"
	"html/template"
	"math"

	"github.com/minibench/mini/internal/unit"
)

// Interval is an estimate with its confidence interval. Low and High may be NaN if
// the interval is unknown.
type Interval struct {
	Label            string
	Value, Low, High float64
	Note             string // shown behind the numbers, for example "n = 500"
	// Conclusion is the conclusion of a difference: "more", "fewer", "borderline",
	// or any other word if the difference is unclear.
	Conclusion string
}

// Rates draws shares between 0 and 1 on an axis in per cent, one below the other.
func Rates(title string, rows []Interval) template.HTML {
	s := scale{low: 0, high: 1, start: 12, end: right}
	return intervals(title, rows, s, []float64{0, 0.25, 0.5, 0.75, 1}, percent,
		func(v Interval) string {
			if !finite(v.Low, v.High) {
				return unit.Percent(v.Value)
			}
			return fmt.Sprintf("%s (%s)", unit.Percent(v.Value), unit.Range(v.Low, v.High))
		},
		func(Interval) (class, shape string) { return colour(0), circle })
}

// Differences draws differences of shares on an axis in percentage points. The
// marks show the conclusions.
func Differences(title string, rows []Interval) template.HTML {
	values := []float64{0}
	for _, v := range rows {
		values = append(values, v.Value, v.Low, v.High)
	}
	low, high := span(values...)
	s, ticks := newScale(100*max(low, -1), 100*min(high, 1), 12, right, 6)
	s.low, s.high = s.low/100, s.high/100
	for i := range ticks {
		ticks[i] /= 100
	}
	return intervals(title, rows, s, ticks,
		func(v float64) string { return signed(100*v, -1) },
		func(v Interval) string {
			if !finite(v.Low, v.High) {
				return signed(100*v.Value, 1) + " points"
			}
			return fmt.Sprintf("%s points (%s to %s)", signed(100*v.Value, 1), signed(100*v.Low, 1), signed(100*v.High, 1))
		},
		func(v Interval) (class, shape string) {
			switch v.Conclusion {
			case "more":
				return "more", toRight
			case "fewer":
				return "fewer", toLeft
			case "borderline":
				return "borderline", diamond
			}
			return "unclear", circle
		})
}

// intervals draws two lines for each interval: its label and numbers, and below
// them the mark, so that both are readable on a narrow screen.
func intervals(title string, rows []Interval, s scale, ticks []float64, tick func(float64) string,
	numbers func(Interval) string, style func(Interval) (class, shape string),
) template.HTML {
	const rowHeight = 2.2 * line
	var c canvas
	var items []string
	y := 0.0
	for _, v := range rows {
		if !finite(v.Value) {
			continue
		}
		shown := numbers(v)
		if v.Note != "" {
			shown += ", " + v.Note
		}
		items = append(items, v.Label+": "+shown)
		y = c.entry(0, y+fontSize, v.Label, shown) - fontSize
		class, shape := style(v)
		at := y + 1.6*line
		c.grid(s, ticks, y+1.1*line, y+rowHeight)
		if s.low < 0 {
			c.path("axis", 1.5, fmt.Sprintf("M%s %sV%s", number(s.at(0)), number(y+1.1*line), number(y+rowHeight)))
		}
		if finite(v.Low, v.High) {
			c.path(class, 2, fmt.Sprintf("M%s %sm0-4v8m0-4H%sm0-4v8", number(s.at(v.Low)), number(at), number(s.at(v.High))))
		}
		c.mark(class, shape, s.at(v.Value), at, class == "unclear")
		y += rowHeight
	}
	if len(items) == 0 {
		return ""
	}
	c.labels(s, ticks, y, tick)
	return c.chart("chart", title, items, y+1.4*line)
}

// signed formats a number with its sign.
func signed(v float64, decimals int) string {
	scaled := math.Round(v * 10)
	switch {
	case scaled == 0:
		return "0"
	case decimals < 0 && v > 0:
		return "+" + number(v)
	case decimals < 0:
		return number(v)
	}
	return fmt.Sprintf("%+.*f", decimals, v)
}
