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
	Columns   columns
	HasTests  bool // a row has a number of tests
	// Unresolved says why attempts are not resolved; nil if there is no verdict.
	Unresolved *report.Unresolved
	Counts     []classCount  // attempts by class
	Outcomes   template.HTML // the same as a bar; "" if there is none
	Charts     []figure
}

// figure is a chart with its caption.
type figure struct {
	Caption string
	Chart   template.HTML
}

// classCount is the number of attempts of a class.
type classCount struct {
	Cell  cell
	Name  string
	Count int
}

// instanceRow is a row of the table of instances. Steps, Tokens, Cost and Seconds include all
// attempts of the instance.
type instanceRow struct {
	report.Row
	Repo   string
	Cells  []cell
	Why    reason // of the first repetition that is not resolved
	Labels []string
	Note   string
}

// newRunPage collects the data of a run. A filter that cannot be parsed is shown with its error.
func (v *Viewer) newRunPage(ctx context.Context, r *run, filter, sort string) (*runPage, error) {
	s, err := r.load()
	if err != nil {
		return nil, err
	}
	p := &runPage{Run: r, Snapshot: s, Headline: headline(s), Filter: filter, Total: len(s.Run.Instances)}
	for i := range s.Summary.Verdicts {
		if s.Summary.Verdicts[i].Baseline == "" {
			p.Verdict = &s.Summary.Verdicts[i]
		}
	}
	p.Unresolved = r.unresolved(s)
	p.draw()
	f, err := query.Parse(filter)
	if err != nil {
		p.FilterErr = err.Error()
	}
	rows := map[string]report.Row{}
	for _, row := range s.Summary.Rows {
		rows[row.ID] = row
	}
	for _, in := range s.Run.Instances {
		if p.FilterErr == "" && !v.matches(ctx, r, s, in, f) {
			continue
		}
		row := instanceRow{
			Row: rows[in.ID], Repo: datasets.RepoOf(in.ID), Cells: cellsOf(in, s.Run.Manifest.Repetitions()), Why: s.why(in),
			Labels: s.Labels[in.ID], Note: s.Notes[in.ID],
		}
		p.HasTests = p.HasTests || row.Why.Tests > 0
		p.Rows = append(p.Rows, row)
	}
	p.sort(sort)
	return p, ctx.Err()
}

// why returns the reason of the first repetition of an instance that is not resolved, or of the
// first one if all are.
func (s *snapshot) why(in runs.Instance) reason {
	if len(in.Repetitions) == 0 {
		return reason{Text: "has not ended", Ours: true}
	}
	var first reason
	for i := range in.Repetitions {
		r := &in.Repetitions[i]
		why := newReason(r, s.verdict(in.ID, r))
		if i == 0 {
			first = why
		}
		if why.Text != "" {
			return why
		}
	}
	return first
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

// Has reports whether the run has an attempt at an instance, and so a page of it.
func (p *runPage) Has(id string) bool {
	_, ok := p.Snapshot.Run.Find(id)
	return ok
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

// sort sorts the rows and sets p.Columns.
func (p *runPage) sort(by string) {
	p.Columns = columns{
		by: by, all: []column{
			{Name: "id", Title: "instance"},
			{Name: "repository", Title: "repository"},
			{Name: "outcome", Title: "outcome"},
			{Name: "reason", Title: "why not resolved"},
			{Name: "tests", Title: "failed tests", Number: true},
			{Name: "steps", Title: "steps", Number: true},
			{Name: "tokens", Title: "tokens", Number: true},
			{Name: "cost", Title: "cost", Number: true},
			{Name: "time", Title: "time", Number: true},
			{Name: "patch", Title: "patch", Number: true},
		},
	}
	cost := func(r instanceRow) float64 {
		if r.KnownCost == nil {
			return -1
		}
		return float64(*r.KnownCost)
	}
	sortRows(p.Rows, p.Columns, map[string]func(a, b instanceRow) int{
		"repository": func(a, b instanceRow) int { return cmp.Compare(a.Repo, b.Repo) },
		"outcome":    func(a, b instanceRow) int { return cmp.Compare(letters(a.Cells), letters(b.Cells)) },
		"reason":     func(a, b instanceRow) int { return cmp.Compare(a.Why.Text, b.Why.Text) },
		"tests":      func(a, b instanceRow) int { return cmp.Compare(a.Why.Failed, b.Why.Failed) },
		"steps":      func(a, b instanceRow) int { return cmp.Compare(a.AllSteps, b.AllSteps) },
		"tokens":     func(a, b instanceRow) int { return cmp.Compare(a.Tokens, b.Tokens) },
		"cost":       func(a, b instanceRow) int { return cmp.Compare(cost(a), cost(b)) },
		"time":       func(a, b instanceRow) int { return cmp.Compare(a.Seconds, b.Seconds) },
		"patch":      func(a, b instanceRow) int { return cmp.Compare(a.PatchBytes, b.PatchBytes) },
	}, func(a, b instanceRow) int { return datasets.CompareNatural(a.ID, b.ID) })
}

func letters(cells []cell) string {
	var b strings.Builder
	for _, c := range cells {
		b.WriteByte(byte(c.Class))
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

// count counts the attempts that count by class, and those that have not ended.
func (s *snapshot) count() []classCount {
	counts := map[chart.Class]int{}
	for _, in := range s.Run.Instances {
		for _, c := range cellsOf(in, s.Run.Manifest.Repetitions()) {
			counts[c.Class]++
		}
	}
	counts[chart.None] += s.Summary.NotStarted * s.Run.Manifest.Repetitions()
	var all []classCount
	for _, class := range chart.Classes() {
		if counts[class] > 0 {
			all = append(all, classCount{cell{Class: class}, class.Name(), counts[class]})
		}
	}
	return all
}
