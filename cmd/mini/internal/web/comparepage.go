package web

import (
	"errors"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/web/chart"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/compare"
	"github.com/minibench/mini/runner/stats"
)

// comparePage is the data of the page that compares runs.
type comparePage struct {
	Runs        []*run // those that are compared
	Base        int    // index
	Missing     compare.MissingRule
	Result      *compare.Result
	Sections    []compare.Section
	Rates       template.HTML // charts; "" if there is nothing to draw
	Differences template.HTML
	CostRate    template.HTML
	ByLimit     template.HTML
	snapshots   []*snapshot // of Runs
}

// choose returns the runs with these keys, or all runs if there are none.
func (v *Viewer) choose(keys []string) ([]*run, error) {
	if len(keys) == 0 {
		return v.all(), nil
	}
	var chosen []*run
	for _, key := range keys {
		r := v.run(key)
		if r == nil {
			return nil, errNotFound
		}
		if !slices.Contains(chosen, r) {
			chosen = append(chosen, r)
		}
	}
	return chosen, nil
}

// newComparePage compares runs with one of them.
func (v *Viewer) newComparePage(chosen []*run, base int, missing compare.MissingRule) (*comparePage, error) {
	if len(chosen) < 2 {
		return nil, errTooFew
	}
	if base < 0 || base >= len(chosen) || missing != compare.Drop && missing != compare.Fail {
		return nil, errNotFound
	}
	p := &comparePage{Runs: chosen, Base: base, Missing: missing}
	var runs []compare.Run
	for _, r := range chosen {
		s, err := r.load()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", r.Name, err)
		}
		p.snapshots, runs = append(p.snapshots, s), append(runs, s.Compared)
	}
	result, err := compare.New(runs, compare.Options{Base: base, Missing: missing})
	if err != nil {
		return nil, err
	}
	p.Result, p.Sections = result, result.NamedSections()
	p.draw()
	return p, nil
}

// verdict says in a few words what the comparison of a pair shows, with the details below it.
type verdict struct {
	Headline, Details string
}

// Verdicts returns what the comparison shows of each candidate.
func (p *comparePage) Verdicts() (all []verdict) {
	rates := map[string]string{}
	for _, s := range p.Result.Runs {
		rates[s.Name] = fmt.Sprintf("%s of %d", unit.Percent(s.Rate.Mean), s.Rate.Instances)
	}
	for _, pair := range p.Result.Pairs {
		candidate, base := rates[pair.Candidate], rates[pair.Base]
		v := verdict{Details: pair.Sentence + "."}
		switch pair.Conclusion {
		case compare.More:
			v.Headline = fmt.Sprintf("%s resolves more than %s: %s against %s", pair.Candidate, pair.Base, candidate, base)
		case compare.Fewer:
			v.Headline = fmt.Sprintf("%s resolves fewer than %s: %s against %s", pair.Candidate, pair.Base, candidate, base)
		case compare.NoPairs:
			v.Headline = "Nothing to compare: " + pair.Candidate + " and " + pair.Base + " have no instance with a verdict in both"
			v.Details = ""
		case compare.Borderline:
			v.Headline = fmt.Sprintf("A borderline difference: %s resolves %s, %s %s", pair.Candidate, candidate, pair.Base, base)
		default:
			v.Headline = fmt.Sprintf("No clear difference: %s resolves %s, %s %s", pair.Candidate, candidate, pair.Base, base)
		}
		for _, start := range []string{"cannot ", "borderline"} {
			if rest, ok := strings.CutPrefix(v.Details, start); ok {
				v.Details = strings.ToUpper(start[:1]) + start[1:] + rest
			}
		}
		all = append(all, v)
	}
	return all
}

// draw draws the charts.
func (p *comparePage) draw() {
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

// Matrix draws the outcomes of all attempts: a line for each instance, which leads to its page, and a
// column for each attempt of each run.
func (p *comparePage) Matrix(l links) template.HTML {
	var columns []string
	rows := map[string]*chart.Row{}
	for i, s := range p.snapshots {
		width := s.Run.Manifest.Repetitions()
		for _, in := range s.Run.Instances {
			width = max(width, len(cellsOf(in, 1)))
		}
		for _, in := range s.Run.Instances {
			row := rows[in.ID]
			if row == nil {
				row = &chart.Row{Label: in.ID, Link: l.CompareInstance(p.Runs, in.ID)}
				if l.file { // which has that page of some instances only
					row.Link = l.Instance(p.Runs[i], in.ID)
				}
				rows[in.ID] = row
			}
			for len(row.Cells) < len(columns) {
				row.Cells = append(row.Cells, chart.None)
			}
			for _, c := range cellsOf(in, width) {
				row.Cells = append(row.Cells, c.Class)
			}
		}
		for range width {
			columns = append(columns, p.Runs[i].Name)
		}
	}
	var all []chart.Row
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		all = append(all, *rows[id])
	}
	return chart.Matrix("Outcome of every attempt", columns, all)
}

// Named returns the run with a name in the tables; nil if there is none.
func (p *comparePage) Named(name string) *run {
	if i := slices.IndexFunc(p.Runs, func(r *run) bool { return r.Name == name }); i >= 0 {
		return p.Runs[i]
	}
	return nil
}

// compareInstancePage is the data of the page that compares an instance in all runs.
type compareInstancePage struct {
	ID      string
	Runs    []*run // those that are compared
	Columns []attemptColumn
	Gold    string
	// Differences are those of the patches: of the other columns and the first, and of each and the
	// gold patch.
	Differences []difference
}

// difference is that of two patches.
type difference struct {
	First, Second string // their names
	Text          string // see patchDifference
}

// attemptColumn is the attempt of a run at the instance.
type attemptColumn struct {
	Run     *run
	Cells   []cell
	Attempt attemptSummary
	Tests   []string // failed tests of the verdict on the attempt
	Files   []string // that the patch changes
	Parts   []part
	Shared  int // number of first commands that all columns have in common
	Error   string
}

// part is the steps of an attempt up to a milestone.
type part struct {
	Name  string // of the milestone that ends it; "" for the last part
	Steps []stepView
}

// newCompareInstancePage collects the attempts of runs at an instance.
func (v *Viewer) newCompareInstancePage(chosen []*run, id string) (*compareInstancePage, error) {
	p := &compareInstancePage{ID: id, Runs: chosen}
	for _, r := range chosen {
		_, _, err := r.find(id)
		if errors.Is(err, errNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c, gold := v.newColumn(r, id)
		p.Columns = append(p.Columns, c)
		if gold != "" {
			p.Gold = gold
		}
	}
	if len(p.Columns) == 0 {
		return nil, errNotFound
	}
	add := func(first, second, a, b string) {
		if text := patchDifference(a, b); a != "" && b != "" && text != "" {
			p.Differences = append(p.Differences, difference{first, second, text})
		}
	}
	for _, c := range p.Columns[1:] {
		add(p.Columns[0].Run.Name, c.Run.Name, p.Columns[0].Attempt.Patch, c.Attempt.Patch)
	}
	for _, c := range p.Columns {
		add("the gold patch", c.Run.Name, p.Gold, c.Attempt.Patch)
	}
	shared := sharedCommands(p.Columns)
	for i := range p.Columns {
		p.Columns[i].fold(shared)
	}
	return p, nil
}

// newColumn collects the attempt that counts, and the gold patch.
func (v *Viewer) newColumn(r *run, id string) (attemptColumn, string) {
	c := attemptColumn{Run: r}
	page, err := v.newInstancePage(r, id)
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
	a, err := v.newAttemptPage(r, id, c.Attempt.Number, "", "", false)
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
				lines = append(lines, s.Command)
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
