package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/minibench/mini/runner"
)

// top is how many instances a ranking has.
const top = 10

// tookSoFar is how long an attempt without a result has taken. Where a mini is
// at work the newest one goes on, though its journal may be silent for minutes.
func tookSoFar(run *runner.Run, a runner.Attempt, now time.Time) time.Duration {
	start, end := a.SoFar.Start, a.SoFar.End
	sessions := run.Manifest.Sessions
	if n := len(sessions); run.Worker > 0 && n > 0 && start.After(sessions[n-1].Started) {
		end = now
	}
	return max(0, end.Sub(start))
}

// rank finds the extremes.
func (g *Glance) rank() {
	g.Expensive = ranked(g.Rows, func(r Row) float64 { return float64(r.Cost) })
	g.Slowest = ranked(g.Rows, func(r Row) float64 { return r.Seconds })
	var steps []int
	for _, r := range g.Rows {
		if r.Class != "" {
			steps = append(steps, r.Steps)
		}
	}
	slices.Sort(steps)
	g.Totals.Median, g.Totals.P90, g.Totals.Max = quantile(steps, 50), quantile(steps, 90), quantile(steps, 100)
}

// ranked are the rows with the most of something, and none with nothing.
func ranked(rows []Row, of func(Row) float64) []Row {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return of(r) <= 0 })
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(of(b), of(a)) })
	return slices.Clip(rows[:min(top, len(rows))])
}

// quantile is the nearest rank: the smallest number that so many percent of
// the sorted ones do not exceed.
func quantile(sorted []int, percent int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
