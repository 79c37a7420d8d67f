package web

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/web/chart"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/report"
)

// draw draws the charts of the run. Each answers a question; one that has nothing to show is left
// out.
func (p *runPage) draw() {
	s := p.Snapshot
	p.Counts = s.count()
	var bar []chart.Part
	for _, c := range p.Counts {
		bar = append(bar, c.Cell.Class.Part(float64(c.Count)))
	}
	p.Outcomes = chart.Strip("Outcomes of the attempts", bar)
	add := func(f figure) {
		if f.Chart != "" {
			p.Charts = append(p.Charts, f)
		}
	}
	if s.IsLive() {
		add(p.progress())
	}
	add(p.repositories())
	var steps, costs, seconds []chart.Sample
	dearest := 0.0
	for _, in := range s.Run.Instances {
		for i := range in.Repetitions {
			r := &in.Repetitions[i]
			class := newCell(0, r).Class
			steps = append(steps, chart.Sample{Value: float64(r.Steps), Class: class})
			seconds = append(seconds, chart.Sample{Value: r.Seconds, Class: class})
			if r.Cost != nil {
				dearest = max(dearest, float64(*r.Cost))
				costs = append(costs, chart.Sample{Value: float64(*r.Cost), Class: class})
			}
		}
	}
	totals := s.Summary.Totals
	add(figure{
		fmt.Sprintf("Steps of an attempt: median %d, 90%% up to %d", totals.Median, totals.P90),
		chart.Histogram("Attempts by number of steps", steps, func(v float64) string { return unit.Count(int64(v)) }),
	})
	add(figure{"Cost of an attempt", chart.Histogram("Attempts by cost", costs, unit.MoneyColumn(dearest/10))})
	add(figure{"Time of an attempt", chart.Histogram("Attempts by time", seconds, unit.Seconds)})
	var phases []chart.Bar
	for _, phase := range s.phases() {
		if unit.Seconds(phase.Sum) != unit.Seconds(0) {
			phases = append(phases, chart.Bar{
				Label: phase.Name, Note: unit.Seconds(phase.Sum) + ", median " + unit.Seconds(phase.Median),
				Parts: []chart.Part{{Style: "c0", Size: phase.Sum}},
			})
		}
	}
	add(figure{"Where the time went, in all attempts", chart.Bars("Time by phase", phases)})
	if len(s.Stats.ByLimit) > 1 {
		add(figure{byLimitTitle, chart.ByLimit(byLimitTitle, []chart.Series{newSeries(s.Stats)})})
	}
}

// repositories draws how many attempts are resolved at the instances of each repository.
func (p *runPage) repositories() figure {
	const most = 12 // repositories
	if p.Unresolved == nil || !p.Unresolved.HasVerdict() || len(p.Unresolved.Repositories) < 2 {
		return figure{}
	}
	repos := slices.Clone(p.Unresolved.Repositories)
	slices.SortStableFunc(repos, func(a, b report.UnresolvedRepo) int { return cmp.Compare(b.Attempts, a.Attempts) })
	caption := "Resolved by repository"
	if n := len(repos) - most; n > 0 {
		caption += fmt.Sprintf(" (the %d largest; %s)", most, text.Count(n, "smaller one"))
		repos = repos[:most]
	}
	var bars []chart.Bar
	for _, r := range repos {
		bars = append(bars, chart.Bar{
			Label: r.Name, Note: fmt.Sprintf("%d of %d", r.Resolved, r.Attempts),
			Parts: []chart.Part{chart.Resolved.Part(float64(r.Resolved)), chart.None.Part(float64(r.Attempts - r.Resolved))},
		})
	}
	return figure{caption, chart.Bars(caption, bars)}
}

// progress draws how many attempts have ended and how many are resolved since the start of the run.
func (p *runPage) progress() figure {
	var ended []chart.Event
	start := time.Time{}
	if sessions := p.Snapshot.Run.Manifest.Sessions; len(sessions) > 0 {
		start = sessions[len(sessions)-1].Started
	}
	for _, in := range p.Snapshot.Run.Instances {
		for i := range in.Repetitions {
			if r := &in.Repetitions[i]; r.End.After(start) {
				ended = append(ended, chart.Event{At: r.End.Sub(start).Seconds(), Class: newCell(0, r).Class})
			}
		}
	}
	return figure{"Attempts that have ended since the start", chart.Progress("Attempts over time", ended)}
}
