package web

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/web/chart"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/compare"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/query"
)

// runPage is the data of the page of a run.
type runPage struct {
	Run       *run
	Snapshot  *snapshot
	Headline  string
	Verdict   *report.Score // the newest evaluation of the run's own patches; nil if there is none
	Rows      []instanceRow // those that the filter shows
	Total     int           // instances of the run
	Filter    string
	FilterErr string
	Sort      string
	Columns   []column
	// Unresolved says why attempts are not resolved; nil if there is no verdict.
	Unresolved *report.Unresolved
	ByLimit    template.HTML // chart; "" if there is nothing to draw
}

// column is a column of the table of instances.
type column struct {
	Name, Title string
	Number      bool
	Next        string // value of the sort parameter that a click on the header asks for
	Sorted      string // "ascending", "descending" or ""
}

// instanceRow is a row of the table of instances. Steps, Tokens, Cost and Seconds include all
// attempts of the instance.
type instanceRow struct {
	report.Row
	Number int
	Repo   string
	Cells  []cell
	Labels []string
}

// cell is the outcome of one repetition of an instance.
type cell struct {
	Attempt int
	Letter  string // R, U, L, E, S or -
	Class   string // of the style sheet: resolved, unresolved, limit, error, submitted or none
	Title   string
}

// newCell describes a result. A nil result is an attempt that has not ended.
func newCell(number int, r *runs.Result) cell {
	c := cell{Attempt: number, Letter: "-", Class: "none", Title: "has not ended"}
	if r == nil {
		return c
	}
	verdict := ""
	if r.Verdict != nil {
		verdict = *r.Verdict
	}
	c.Title = cmp.Or(r.ExitStatus, string(r.Class))
	switch {
	case verdict != "" && r.Class == trajectories.Submitted:
		c.Title = words(verdict)
	case verdict != "":
		c.Title = words(verdict) + ", " + c.Title
	}
	switch {
	case verdict == string(verdicts.Resolved):
		c.Letter, c.Class = "R", "resolved"
	case r.Class == trajectories.Limit:
		c.Letter, c.Class = "L", "limit"
	case r.Class == trajectories.Interrupted:
		c.Title = cmp.Or(r.ExitStatus, "interrupted")
	case !r.Class.IsResult() || verdict == string(verdicts.Infrastructure) || verdict == string(verdicts.Error):
		c.Letter, c.Class = "E", "error"
	case verdict != "":
		c.Letter, c.Class = "U", "unresolved"
	default:
		c.Letter, c.Class = "S", "submitted"
		c.Title += ", not evaluated"
	}
	return c
}

// words returns the name of a class as words.
func words(class string) string { return strings.ReplaceAll(class, "_", " ") }

// cellsOf returns the cells of the repetitions of an instance.
func cellsOf(in runs.Instance, repetitions int) []cell {
	for _, r := range in.Repetitions {
		repetitions = max(repetitions, r.Repetition)
	}
	cells := make([]cell, min(repetitions, runs.MaxRepetitions))
	for i := range cells {
		cells[i] = newCell(0, nil)
		for _, a := range in.Attempts {
			if a.Repetition == i+1 {
				cells[i].Attempt = a.Number // of the newest attempt
			}
		}
	}
	for i := range in.Repetitions {
		r := &in.Repetitions[i]
		cells[r.Repetition-1] = newCell(r.Attempt, r)
	}
	return cells
}

// newRunPage collects the data of a run. A filter that cannot be parsed is shown with its error.
func (v *Viewer) newRunPage(ctx context.Context, r *run, filter, sort string) (*runPage, error) {
	s, err := r.load()
	if err != nil {
		return nil, err
	}
	p := &runPage{Run: r, Snapshot: s, Headline: headline(s), Filter: filter, Sort: sort}
	for i := range s.Summary.Verdicts {
		if s.Summary.Verdicts[i].Baseline == "" {
			p.Verdict = &s.Summary.Verdicts[i]
		}
	}
	p.Unresolved = r.unresolved(s)
	if len(s.Stats.ByLimit) > 1 {
		p.ByLimit = chart.ByLimit(byLimitTitle, []chart.Series{newSeries(s.Stats)})
	}
	f, err := query.Parse(filter)
	if err != nil {
		p.FilterErr = err.Error()
	}
	rows := map[string]report.Row{}
	for _, row := range s.Summary.Rows {
		rows[row.ID] = row
	}
	p.Total = len(s.Run.Instances)
	for _, in := range s.Run.Instances {
		number, ok := r.number(in.ID)
		if !ok || p.FilterErr == "" && !v.matches(ctx, r, s, in, f) {
			continue
		}
		row := instanceRow{
			Row: rows[in.ID], Number: number, Repo: datasets.RepoOf(in.ID), Cells: cellsOf(in, s.Run.Manifest.Repetitions()),
			Labels: s.Labels[in.ID],
		}
		p.Rows = append(p.Rows, row)
	}
	p.sort()
	return p, ctx.Err()
}

// RerunNoise returns compare.Summary.RerunNoise; 0 if it is unknown.
func (p *runPage) RerunNoise() float64 {
	if n := p.Snapshot.Stats.RerunNoise; n != nil {
		return *n
	}
	return 0
}

// Repetitions returns the number of attempts that the run makes at each instance.
func (p *runPage) Repetitions() int { return p.Snapshot.Run.Manifest.Repetitions() }

// Number returns the number of an instance, for its address; -1 if the run has no attempt at it.
func (p *runPage) Number(id string) int {
	if n, ok := p.Run.number(id); ok {
		return n
	}
	return -1
}

// matches reports whether one of the attempts of an instance matches a filter.
func (v *Viewer) matches(ctx context.Context, r *run, s *snapshot, in runs.Instance, f query.Filter) bool {
	return slices.ContainsFunc(in.AllAttempts(), func(a runs.Attempt) bool {
		row := query.Row{ID: in.ID, Status: []string{"not ended"}, Labels: s.Labels[in.ID]}
		if res := a.Result; res != nil {
			row.Status, row.Cost = []string{res.ExitStatus, string(res.Class), "ended"}, res.Cost
			if res.Verdict != nil {
				row.Verdict = *res.Verdict
			}
		}
		if !f.Matches(row) {
			return false
		}
		if f.Text == "" {
			return true
		}
		if a.Journal == "" || ctx.Err() != nil || !query.FileMayContain(a.Journal, f.Text) {
			return false
		}
		t, err := v.attempts.get(r.Dir, a.Journal)
		return err == nil && f.MatchesText(t.Timeline)
	})
}

// headline says in one sentence how many instances are resolved, or why that is not known.
func headline(s *snapshot) string {
	if n := len(s.Summary.Verdicts); n > 0 && s.Summary.Verdicts[n-1].NoRate != "" {
		return s.Summary.Verdicts[n-1].NoRate
	}
	return rateSentence(s.Stats, s.Summary.Instances, s.Summary.WithResult)
}

func rateSentence(c compare.Summary, total, withResult int) string {
	if c.Rate.Instances == 0 {
		return fmt.Sprintf("%s, %d with a result; none has been evaluated", text.Count(total, "instance"), withResult)
	}
	line := fmt.Sprintf("%d of %d resolved, ", c.Resolved, c.Rate.Instances)
	if c.AttemptsMax > 1 {
		line = fmt.Sprintf("%d of %d attempts at %s resolved, mean rate ", c.Resolved, c.Counted, text.Count(c.Rate.Instances, "instance"))
	}
	line += unit.Percent(c.Rate.Mean)
	if i := c.Rate.Interval; i != nil {
		line += fmt.Sprintf(" (%s to %s)", unit.Points(i.Low), unit.Points(i.High))
	}
	var missing []string
	if n := total - c.Rate.Instances; n > 0 {
		missing = append(missing, text.Count(n, "instance"))
	}
	if c.MissingAttempts > 0 {
		missing = append(missing, text.Count(c.MissingAttempts, "attempt"))
	}
	if len(missing) > 0 {
		line += fmt.Sprintf("; %s without a verdict: between %s and %s of all", strings.Join(missing, " and "), unit.Percent(c.Bounds.Low), unit.Percent(c.Bounds.High))
	}
	return line
}

// sortColumns are the columns of the table; all but the first two are numbers.
var sortColumns = []column{
	{Name: "id", Title: "instance"},
	{Name: "outcome", Title: "outcome"},
	{Name: "steps", Title: "steps", Number: true},
	{Name: "tokens", Title: "tokens", Number: true},
	{Name: "cost", Title: "cost", Number: true},
	{Name: "time", Title: "time", Number: true},
	{Name: "patch", Title: "patch", Number: true},
}

// sort sorts the rows by p.Sort, such as "id" or "-cost", and sets p.Columns.
func (p *runPage) sort() {
	by, descending := strings.CutPrefix(p.Sort, "-")
	cost := func(r instanceRow) float64 {
		if r.KnownCost == nil {
			return -1
		}
		return float64(*r.KnownCost)
	}
	order := map[string]func(a, b instanceRow) int{
		"outcome": func(a, b instanceRow) int { return cmp.Compare(letters(a.Cells), letters(b.Cells)) },
		"steps":   func(a, b instanceRow) int { return cmp.Compare(a.AllSteps, b.AllSteps) },
		"tokens":  func(a, b instanceRow) int { return cmp.Compare(a.Tokens, b.Tokens) },
		"cost":    func(a, b instanceRow) int { return cmp.Compare(cost(a), cost(b)) },
		"time":    func(a, b instanceRow) int { return cmp.Compare(a.Seconds, b.Seconds) },
		"patch":   func(a, b instanceRow) int { return cmp.Compare(a.PatchBytes, b.PatchBytes) },
	}[by]
	slices.SortStableFunc(p.Rows, func(a, b instanceRow) int {
		c := 0
		if order != nil {
			c = order(a, b)
		}
		c = cmp.Or(c, datasets.CompareNatural(a.ID, b.ID))
		if descending {
			return -c
		}
		return c
	})
	for _, col := range sortColumns {
		col.Next = col.Name
		if col.Number {
			col.Next = "-" + col.Name // largest first
		}
		if by == col.Name || by == "" && col.Name == "id" {
			col.Sorted = "ascending"
			col.Next = "-" + col.Name
			if descending {
				col.Sorted, col.Next = "descending", col.Name
			}
		}
		p.Columns = append(p.Columns, col)
	}
}

func letters(cells []cell) string {
	var b strings.Builder
	for _, c := range cells {
		b.WriteString(c.Letter)
	}
	return b.String()
}

// CostText formats the cost of the row.
func (r instanceRow) CostText() string {
	if r.KnownCost == nil {
		return "-"
	}
	return unit.Cost(float64(*r.KnownCost), r.CostKnown)
}
