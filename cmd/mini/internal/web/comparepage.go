package web

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/minibench/mini/cmd/mini/internal/web/chart"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/compare"
	"github.com/minibench/mini/runner/stats"
)

// comparePage is the data of the page that compares the runs.
type comparePage struct {
	Runs        []*run
	Base        int
	Missing     compare.MissingRule
	Result      *compare.Result
	Sections    []compare.Section
	Rates       template.HTML // charts; "" if there is nothing to draw
	Differences template.HTML
	CostRate    template.HTML
	ByLimit     template.HTML
	Matrix      template.HTML
	addresses   map[string][2]int // run and number of instances by id
}

// newComparePage compares all runs of the viewer with the run of number base.
func (v *Viewer) newComparePage(base int, missing compare.MissingRule) (*comparePage, error) {
	if len(v.runs) < 2 || v.run(base) == nil || missing != compare.Drop && missing != compare.Fail {
		return nil, errNotFound
	}
	p := &comparePage{Runs: v.runs, Base: base, Missing: missing, addresses: map[string][2]int{}}
	var runs []compare.Run
	for _, r := range v.runs {
		s, err := r.load()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", r.Name, err)
		}
		runs = append(runs, s.Compared)
		for _, in := range s.Compared.Instances {
			if _, ok := p.addresses[in.ID]; ok {
				continue
			}
			if n, ok := r.number(in.ID); ok {
				p.addresses[in.ID] = [2]int{r.Number, n}
			}
		}
	}
	result, err := compare.New(runs, compare.Options{Base: base, Missing: missing})
	if err != nil {
		return nil, err
	}
	p.Result, p.Sections = result, result.Sections(true)
	p.draw(runs)
	return p, nil
}

// Address returns the run and the number of an instance; nil if no run has it.
func (p *comparePage) Address(id string) []int {
	if a, ok := p.addresses[id]; ok {
		return a[:]
	}
	return nil
}

// draw draws the charts.
func (p *comparePage) draw(runs []compare.Run) {
	var rates, differences []chart.Interval
	var points []chart.Point
	var series []chart.Series
	for _, s := range p.Result.Runs {
		low, high := bounds(s.Rate.Interval)
		if s.Rate.Instances == 0 {
			continue
		}
		rates = append(rates, chart.Interval{
			Label: s.Name, Value: s.Rate.Mean, Low: low, High: high, Note: "n = " + fmt.Sprint(s.Rate.Instances),
		})
		if s.Cost.Known && s.Cost.PerInstance > 0 {
			nan := math.NaN()
			points = append(points, chart.Point{
				Label: s.Name, Cost: s.Cost.PerInstance, CostLow: nan, CostHigh: nan,
				Rate: s.Rate.Mean, RateLow: low, RateHigh: high, Frontier: s.Frontier,
			})
		}
		if len(s.ByLimit) > 1 {
			series = append(series, newSeries(s))
		}
	}
	for _, pair := range p.Result.Pairs {
		if pair.Difference.Instances == 0 {
			continue
		}
		d := pair.Difference
		differences = append(differences, chart.Interval{
			Label: pair.Candidate, Value: d.Mean, Low: d.Interval.Low, High: d.Interval.High,
			Note: pNote(pair), Conclusion: string(pair.Conclusion),
		})
	}
	p.Rates = chart.Rates("Resolve rates with 95% intervals", rates)
	p.Differences = chart.Differences("Difference to "+p.Result.Base+" in points, with 95% intervals", differences)
	p.CostRate = chart.CostRate("Rate by cost of an instance", points)
	p.ByLimit = chart.ByLimit(byLimitTitle, series)
	p.Matrix = newMatrix(runs)
}

// byLimitTitle is the title of the chart of compare.LimitRate.
const byLimitTitle = "Resolved within a number of steps"

// pNote formats the p-value of a pair, adjusted if there are several candidates.
func pNote(pair compare.Pair) string {
	if pair.AdjustedP != nil {
		return "p = " + pvalue(pair.AdjustedP) + " (adjusted)"
	}
	return "p = " + pvalue(pair.Difference.P)
}

func bounds(i *stats.Interval) (low, high float64) {
	if i == nil {
		return math.NaN(), math.NaN()
	}
	return i.Low, i.High
}

func newSeries(s compare.Summary) chart.Series {
	series := chart.Series{Label: s.Name}
	for _, l := range s.ByLimit {
		low, high := bounds(l.Interval)
		series.Points = append(series.Points, chart.LimitRate{Steps: l.Steps, Rate: l.Rate, Low: low, High: high})
	}
	return series
}

// newMatrix draws the outcomes of all attempts: a line for each instance, a column for each
// attempt of each run.
func newMatrix(runs []compare.Run) template.HTML {
	var columns, ids []string
	var width []int
	rows := map[string]map[int][]chart.Class{}
	for i, r := range runs {
		k := 1
		for _, in := range r.Instances {
			if rows[in.ID] == nil {
				rows[in.ID] = map[int][]chart.Class{}
				ids = append(ids, in.ID)
			}
			for _, a := range in.Attempts {
				rows[in.ID][i] = append(rows[in.ID][i], classOf(a))
			}
			k = max(k, len(in.Attempts))
		}
		width = append(width, k)
		for range k {
			columns = append(columns, compare.Letter(i))
		}
	}
	slices.Sort(ids)
	var all []chart.Row
	for _, id := range ids {
		row := chart.Row{Label: id}
		for i := range runs {
			cells := slices.Clone(rows[id][i])
			for len(cells) < width[i] {
				cells = append(cells, chart.None)
			}
			row.Cells = append(row.Cells, cells...)
		}
		all = append(all, row)
	}
	return chart.Matrix("Outcome of every attempt", columns, all)
}

func classOf(a compare.Attempt) chart.Class {
	switch {
	case a.Resolved:
		return chart.Resolved
	case a.AtLimit:
		return chart.Limit
	}
	return chart.Unresolved
}

// compareInstancePage is the data of the page that compares an instance in all runs.
type compareInstancePage struct {
	ID      string
	Columns []attemptColumn
	Gold    string
}

// attemptColumn is the attempt of a run at the instance.
type attemptColumn struct {
	Run      *run
	Instance int
	Cells    []cell
	Attempt  attemptSummary
	Tests    []string // failed tests of the verdict on the attempt
	Files    []string // that the patch changes
	Parts    []part
	Shared   int // number of first commands that all columns have in common
	Error    string
}

// part is the steps of an attempt up to a milestone.
type part struct {
	Name  string // of the milestone that ends it; "" for the last part
	Steps []stepView
}

// newCompareInstancePage collects the attempts of all runs at the instance that a run has under a
// number.
func (v *Viewer) newCompareInstancePage(r *run, number int) (*compareInstancePage, error) {
	if _, err := r.load(); err != nil {
		return nil, err
	}
	id, ok := r.instance(number)
	if !ok {
		return nil, errNotFound
	}
	p := &compareInstancePage{ID: id}
	for _, other := range v.runs {
		if n, ok := other.number(id); ok {
			c, gold := v.newColumn(other, n)
			p.Columns = append(p.Columns, c)
			if gold != "" {
				p.Gold = gold
			}
		}
	}
	shared := sharedCommands(p.Columns)
	for i := range p.Columns {
		p.Columns[i].fold(shared)
	}
	return p, nil
}

// newColumn collects the attempt that counts, and the gold patch.
func (v *Viewer) newColumn(r *run, number int) (attemptColumn, string) {
	c := attemptColumn{Run: r, Instance: number}
	page, err := v.newInstancePage(r, number)
	if err != nil || len(page.Attempts) == 0 {
		c.Error = "there is no attempt"
		return c, ""
	}
	c.Cells = page.Cells
	c.Attempt = page.Attempts[0]
	for _, a := range page.Attempts {
		if a.Selected {
			c.Attempt = a
			break
		}
	}
	c.Files = slices.Compact(slices.Sorted(slices.Values(patchFiles(c.Attempt.Patch))))
	a, err := v.newAttemptPage(r, number, c.Attempt.Number, "", "", false)
	if err != nil {
		c.Error = text.Printable(err.Error())
		return c, page.Gold
	}
	c.Parts = split(a)
	for _, t := range a.Failing {
		c.Tests = append(c.Tests, t.Name)
	}
	return c, page.Gold
}

// split divides the steps of an attempt at its milestones.
func split(a *attemptPage) []part {
	ends := map[string]string{}
	for _, m := range a.Milestones {
		if m.Step != "" {
			name := m.Name
			if ends[m.Step] != "" {
				name = ends[m.Step] + "; " + name
			}
			ends[m.Step] = name
		}
	}
	parts := []part{{}}
	for _, s := range a.Outline {
		if s.Name == "0" || s.Name == "end" {
			continue
		}
		last := &parts[len(parts)-1]
		last.Steps = append(last.Steps, s)
		if name := ends[s.Name]; name != "" {
			last.Name = name
			parts = append(parts, part{})
		}
	}
	if len(parts[len(parts)-1].Steps) == 0 {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// sharedCommands returns how many commands all columns begin with.
func sharedCommands(columns []attemptColumn) int {
	var lists [][]string
	for _, c := range columns {
		var lines []string
		for _, p := range c.Parts {
			for _, s := range p.Steps {
				lines = append(lines, s.Line)
			}
		}
		lists = append(lists, lines)
	}
	if len(lists) < 2 {
		return 0
	}
	n := 0
	for ; ; n++ {
		for _, l := range lists {
			if n >= len(l) || l[n] != lists[0][n] {
				return n
			}
		}
	}
}

// fold removes the first commands, which all columns share.
func (c *attemptColumn) fold(shared int) {
	c.Shared = shared
	for i := range c.Parts {
		n := min(shared, len(c.Parts[i].Steps))
		c.Parts[i].Steps = c.Parts[i].Steps[n:]
		shared -= n
	}
}
