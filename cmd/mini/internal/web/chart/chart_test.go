package chart_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/cmd/mini/internal/web/chart"
	"github.com/minibench/mini/internal/unit"
)

var update = flag.Bool("update", false, "rewrite golden files")

var nan = math.NaN()

// hostile is a label that would break out of an element, an attribute or the line
// if it were not escaped.
const hostile = "</text><script>pwn()</script>\"' onload=pwn() \u202etxt.exe\x1b[31m\x00 {{.}} \xff ="

func intervals(n int) []chart.Interval {
	var rows []chart.Interval
	conclusions := []string{"more", "fewer", "cannot_tell", "borderline"}
	for i := range n {
		value := math.Mod(float64(i)*0.37, 1)
		rows = append(rows, chart.Interval{
			Label: fmt.Sprintf("run-%d", i), Value: value, Low: max(value-0.05, 0), High: min(value+0.04, 1), Note: "n = 500",
			Conclusion: conclusions[i%4],
		})
	}
	return rows
}

func differences() []chart.Interval {
	return []chart.Interval{
		{Label: "qwen3-coder-480b, 250 steps, temperature 0.7, second prompt", Value: 0.062, Low: 0.021, High: 0.103, Note: "p = 0.003", Conclusion: "more"},
		{Label: "kimi-k2", Value: 0.01, Low: -0.031, High: 0.051, Note: "p = 0.66", Conclusion: "cannot_tell"},
		{Label: "glm-4.5", Value: 0.034, Low: -0.001, High: 0.069, Note: "p = 0.049", Conclusion: "borderline"},
		{Label: "devstral", Value: -0.12, Low: -0.17, High: -0.07, Note: "p < 1e-12", Conclusion: "fewer"},
		{Label: "one instance", Value: 0, Low: nan, High: nan, Conclusion: "no_pairs"},
	}
}

func matrix(rows, columns int) ([]string, []chart.Row) {
	classes := []chart.Class{chart.Resolved, chart.Resolved, chart.Unresolved, chart.Limit, chart.Infrastructure, chart.None, 'x'}
	var names []string
	for j := range columns {
		names = append(names, fmt.Sprint(j+1))
	}
	var all []chart.Row
	for i := range rows {
		r := chart.Row{Label: fmt.Sprintf("astropy__astropy-%d", 12000+i)}
		for j := range columns {
			r.Cells = append(r.Cells, classes[(i*i+3*j)%len(classes)])
		}
		all = append(all, r)
	}
	return names, all
}

func points(n int) []chart.Point {
	var all []chart.Point
	for i := range n {
		cost, rate := 0.2+0.31*float64(i), 0.4+0.06*float64(i%5)
		all = append(all, chart.Point{
			Label: fmt.Sprintf("model-%d", i), Cost: cost, CostLow: 0.9 * cost, CostHigh: 1.15 * cost,
			Rate: rate, RateLow: rate - 0.05, RateHigh: rate + 0.04, Frontier: i < 5 && i != 3,
		})
	}
	return all
}

func series(n int) []chart.Series {
	var all []chart.Series
	for i := range n {
		s := chart.Series{Label: fmt.Sprintf("model-%d", i)}
		for limit := 25; limit <= 250; limit += 25 {
			rate := (0.7 - 0.08*float64(i)) * (1 - math.Exp(-float64(limit)/(60+10*float64(i))))
			s.Points = append(s.Points, chart.LimitRate{Steps: limit, Rate: rate, Low: rate - 0.04, High: rate + 0.04})
		}
		all = append(all, s)
	}
	return all
}

func steps(n int) []chart.Step {
	var all []chart.Step
	now := 0.0
	for i := range n {
		s := chart.Step{
			Start: now, Model: 2 + float64(i*7%11), Command: float64(i*i%13) / 4, Tokens: 900 + 120*float64(i), Cost: 0.002 + 0.0004*float64(i),
			Failed: i%9 == 4,
		}
		if i%10 == 3 {
			s.Command += 60
		}
		now += s.Model + s.Command + 0.2
		all = append(all, s)
	}
	return all
}

func marks() []chart.Mark { return []chart.Mark{{1, 30}, {2, 95}, {3, 101}, {4, 400}} }

// spans are those of a sandbox that is ready before the first step.
func spans() []chart.Span {
	return []chart.Span{{"start", 0, 20}, {"scrub", 20, 1}, {"diff", 380, 2}, {"none", 3, 0}, {"unknown", nan, 1}}
}

// linked returns steps that are links.
func linked(n int) []chart.Step {
	all := steps(n)
	for i := range all {
		all[i].Link = "#"
	}
	return all
}

func samples(n int) []chart.Sample {
	var all []chart.Sample
	for i := range n {
		all = append(all, chart.Sample{Value: float64(i * i % 97), Class: chart.Classes()[i%6]})
	}
	return all
}

func TestGolden(t *testing.T) {
	names, small := matrix(9, 6)
	many, large := matrix(500, 3)
	spread := points(4)
	spread[3].Cost, spread[3].CostLow, spread[3].CostHigh = 40, 33, 55
	for name, c := range map[string]template.HTML{
		"rates":        chart.Rates("Resolved instances", intervals(6)),
		"differences":  chart.Differences("Differences to base", differences()),
		"matrix":       chart.Matrix("Verdicts", names, small),
		"matrix-large": chart.Matrix("Verdicts", many, large),
		"cost":         chart.CostRate("Cost and rate", points(7)),
		"cost-log":     chart.CostRate("Cost and rate", spread),
		"limits":       chart.ByLimit("Rate by step limit", series(4)),
		"histogram":    chart.Histogram("Attempts by cost", samples(60), unit.Money),
		"bars": chart.Bars("By repository", []chart.Bar{
			{"a/long-name-of-a-repository", "3 of 5", []chart.Part{chart.Resolved.Part(3), chart.None.Part(2)}}, {"b", "1 of 1", []chart.Part{chart.Resolved.Part(1)}},
		}),
		"strip":         chart.Strip("Outcomes", []chart.Part{chart.Resolved.Part(8), chart.Unresolved.Part(2), chart.Infrastructure.Part(1)}),
		"progress":      chart.Progress("Attempts over time", []chart.Event{{5, 'R'}, {9, 'U'}, {20, 'R'}}),
		"timeline":      chart.Timeline("Attempt 1", steps(40), spans(), marks()),
		"timeline-long": chart.Timeline("Attempt 2", steps(2500), nil, nil),
	} {
		t.Run(name, func(t *testing.T) {
			check(t, c)
			path := filepath.Join("testdata", name+".svg")
			if *update {
				if err := os.WriteFile(path, []byte(c), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEdges(t *testing.T) {
	names, one := matrix(1, 1)
	many, tall := matrix(200, 30)
	equal := []chart.Interval{{Label: "a", Value: 0.5, Low: 0.5, High: 0.5}, {Label: "a", Value: 0.5, Low: 0.5, High: 0.5}}
	outside := []chart.Interval{{Label: "a", Value: 1.5, Low: -3, High: 7}, {Label: "b", Value: -2, Low: nan, High: 1e300}}
	inf := math.Inf(1)
	for name, tc := range map[string]struct {
		chart   template.HTML
		isEmpty bool
		has     string
		lacks   string
	}{
		"rates of none":        {chart: chart.Rates("t", nil), isEmpty: true},
		"rates not finite":     {chart: chart.Rates("t", []chart.Interval{{Value: nan}, {Value: inf}}), isEmpty: true},
		"one rate":             {chart: chart.Rates("t", intervals(1)), has: "run-0"},
		"200 rates":            {chart: chart.Rates("t", intervals(200)), has: "and 180 more</desc>"},
		"equal rates":          {chart: chart.Rates("t", equal), has: "50.0% (50.0 to 50.0)"},
		"rates outside":        {chart: chart.Rates("t", outside), has: "150.0%"},
		"no interval":          {chart: chart.Rates("t", []chart.Interval{{Label: "a", Value: 0.25, Low: nan, High: 0.5}}), has: ">25.0%</text>"},
		"hostile rates":        {chart: chart.Rates(hostile, []chart.Interval{{Label: hostile, Note: hostile, Conclusion: hostile}}), has: "&lt;/text&gt;"},
		"long label":           {chart: chart.Rates("t", []chart.Interval{{Label: strings.Repeat("x", 400)}}), has: "…<title>" + strings.Repeat("x", 400)},
		"wide label":           {chart: chart.Rates("t", []chart.Interval{{Label: strings.Repeat("漢", 1<<20)}}), has: "漢…<title>"},
		"differences of none":  {chart: chart.Differences("t", nil), isEmpty: true},
		"no difference":        {chart: chart.Differences("t", []chart.Interval{{Label: "a"}}), has: ">0 points (0 to 0)</text>"},
		"differences outside":  {chart: chart.Differences("t", outside), has: "+150.0 points"},
		"200 differences":      {chart: chart.Differences("t", intervals(200)), has: "run-199"},
		"labels repeat":        {chart: chart.Histogram("t", []chart.Sample{{0.3, chart.Resolved}, {0.4, chart.Limit}}, func(v float64) string { return fmt.Sprintf("%.0f", v) }), has: `<text x="30" y="138" text-anchor="middle">0</text>` + "\n</svg>"},
		"matrix of none":       {chart: chart.Matrix("t", names, nil), isEmpty: true},
		"matrix of no columns": {chart: chart.Matrix("t", nil, one), isEmpty: true},
		"matrix of one":        {chart: chart.Matrix("t", names, one), has: "R resolved 1<"},
		"missing cells":        {chart: chart.Matrix("t", []string{"1", "2"}, []chart.Row{{Label: "a"}}), has: "- no result 2<"},
		"matrix of 6,000":      {chart: chart.Matrix("t", many, tall), has: "- no result 1657<"},
		"hostile matrix":       {chart: chart.Matrix(hostile, []string{hostile}, []chart.Row{{Label: hostile, Cells: []chart.Class{'"'}}}), has: "&lt;/text&gt;"},
		"no points":            {chart: chart.CostRate("t", []chart.Point{{Cost: nan}, {Cost: inf}, {Cost: -1}}), isEmpty: true},
		"one point":            {chart: chart.CostRate("t", points(1)), has: "40.0%, $0.20"},
		"200 points":           {chart: chart.CostRate("t", points(200)), has: "model-199"},
		"free points":          {chart: chart.CostRate("t", []chart.Point{{Label: "a"}, {Label: "a"}}), has: "0.0%, $0.00"},
		"points outside":       {chart: chart.CostRate("t", []chart.Point{{Cost: 1e-9, Rate: 2, RateLow: nan}, {Cost: 1e11, Rate: -1, CostLow: -5, CostHigh: 1e12}}), has: "200.0%"},
		"hostile points":       {chart: chart.CostRate(hostile, []chart.Point{{Label: hostile}}), has: "&lt;/text&gt;"},
		"no series":            {chart: chart.ByLimit("t", []chart.Series{{Label: "a"}, {Points: []chart.LimitRate{{Rate: nan}}}}), isEmpty: true},
		"one limit":            {chart: chart.ByLimit("t", []chart.Series{{Label: "a", Points: []chart.LimitRate{{Steps: 1, Rate: 1, Low: nan, High: nan}}}}), has: "100.0% at 1"},
		"200 series":           {chart: chart.ByLimit("t", series(200)), has: "model-199"},
		"hostile series":       {chart: chart.ByLimit(hostile, []chart.Series{{Label: hostile, Points: series(1)[0].Points}}), has: "&lt;/text&gt;"},
		"no steps":             {chart: chart.Timeline("t", []chart.Step{{Start: -1}, {Model: nan}, {Command: inf}}, nil, marks()), isEmpty: true},
		"step of no time":      {chart: chart.Timeline("t", []chart.Step{{}}, nil, nil), has: "model 0s"},
		"unknown cost":         {chart: chart.Timeline("t", []chart.Step{{Model: 1, Cost: nan}}, nil, nil), lacks: ">cost</text>"},
		"scripted":             {chart: chart.Timeline("t", []chart.Step{{Model: 1}}, nil, nil), lacks: ">tokens</text>"},
		"link":                 {chart: chart.Timeline("t", []chart.Step{{Name: "step 1", Anchor: "1", Link: `x"><b>`, Model: 1}}, nil, nil), has: `<a href="x&#34;&gt;&lt;b&gt;" data-step="1"`},
		"too many links":       {chart: chart.Timeline("t", linked(301), nil, nil), lacks: "<a "},
		"no samples":           {chart: chart.Histogram("t", []chart.Sample{{nan, 'R'}, {-1, 'R'}, {0, 'R'}}, unit.Money), isEmpty: true},
		"one sample":           {chart: chart.Histogram("t", []chart.Sample{{3, 'x'}}, unit.Money), has: "from $3.00: 1"},
		"far sample":           {chart: chart.Histogram("t", append(samples(60), chart.Sample{Value: 1e6}), unit.Seconds), has: "also 1 beyond, up to 11d13h"},
		"no bars":              {chart: chart.Bars("t", []chart.Bar{{Label: "a", Parts: []chart.Part{{"c0", nan}}}}), isEmpty: true},
		"hostile bars":         {chart: chart.Bars(hostile, []chart.Bar{{hostile, hostile, []chart.Part{{"c0", 1}}}}), has: "&lt;/text&gt;"},
		"no strip":             {chart: chart.Strip("t", nil), isEmpty: true},
		"no events":            {chart: chart.Progress("t", []chart.Event{{nan, 'R'}}), isEmpty: true},
		"one event":            {chart: chart.Progress("t", []chart.Event{{0, 'R'}}), has: "1 ended, 1 resolved"},
		"1,000 steps":          {chart: chart.Timeline("t", steps(1000), nil, nil), has: "111 failed"},
		"1,001 steps":          {chart: chart.Timeline("t", steps(1001), nil, nil), has: "1001 steps, drawn in groups of 2"},
		"200 marks":            {chart: chart.Timeline("t", steps(1), nil, make([]chart.Mark, 200)), has: "<title>t</title>"},
		"late mark":            {chart: chart.Timeline("t", steps(1), nil, []chart.Mark{{2, 1e9}, {3, nan}, {1, 1}}), has: ">2</text>"},
		"very long":            {chart: chart.Timeline("t", []chart.Step{{Start: 1e11, Model: 3}}, nil, nil), has: "model 3s"},
		"hostile timeline":     {chart: chart.Timeline(hostile, steps(2), []chart.Span{{hostile, 0, 1}}, []chart.Mark{{1, 1}}), has: "&lt;/text&gt;"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.isEmpty {
				if tc.chart != "" {
					t.Fatalf("got %s", tc.chart)
				}
				return
			}
			check(t, tc.chart)
			if !strings.Contains(string(tc.chart), tc.has) {
				t.Errorf("%q is not in %s", tc.has, tc.chart)
			}
			if tc.lacks != "" && strings.Contains(string(tc.chart), tc.lacks) {
				t.Errorf("%q is in %s", tc.lacks, tc.chart)
			}
		})
	}
}

var (
	badText = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f-\u009f\u202a-\u202e\u2066-\u2069]")
	badPath = regexp.MustCompile(`^[MHVLAmhvlaz0-9. -]*$`)
)

// check checks that a chart is XML with the elements and attributes that a chart
// has, and with no others.
func check(t *testing.T, c template.HTML) {
	t.Helper()
	if s := badText.FindString(string(c)); s != "" {
		t.Errorf("the chart contains %q", s)
	}
	var height float64
	_, view, _ := strings.Cut(string(c), `viewBox="0 0 480 `)
	if _, err := fmt.Sscan(strings.Split(view, `"`)[0], &height); err != nil {
		t.Fatalf("no height: %v", err)
	}
	d := xml.NewDecoder(strings.NewReader(string(c)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, c)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !strings.Contains(" svg title desc g path text a rect ", " "+start.Name.Local+" ") {
			t.Errorf("element %s", start.Name.Local)
		}
		for _, a := range start.Attr {
			if !strings.Contains(" xmlns role class viewBox font-family font-size fill stroke stroke-width stroke-dasharray opacity text-anchor x y d transform preserveAspectRatio href data-step tabindex aria-label width height ", " "+a.Name.Local+" ") {
				t.Errorf("attribute %s", a.Name.Local)
			}
			limit := map[string]float64{"x": 480, "y": height}[a.Name.Local]
			if v, err := strconv.ParseFloat(a.Value, 64); limit > 0 && (err != nil || v < 0 || v > limit) {
				t.Errorf("%s %s is outside of the chart", a.Name.Local, a.Value)
			}
			if a.Name.Local == "d" && !badPath.MatchString(a.Value) {
				t.Errorf("path %.200s", a.Value)
			}
		}
	}
}

func TestNumberNotFinite(t *testing.T) {
	for _, v := range []float64{nan, math.Inf(1), math.Inf(-1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("number(%v) did not panic", v)
				}
			}()
			chart.Number(v)
		}()
	}
	for v, want := range map[float64]string{0: "0", -0.001: "0", 1.005: "1", 12.345: "12.35", -3: "-3", 1e6: "1000000"} {
		if got := chart.Number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
}
