package compare

import (
	"cmp"

	"github.com/minibench/mini/runner/stats"
)

// point is the rate and the cost of a run.
type point struct {
	rate, cost float64
	known      bool // whether the cost is known and there is a rate
}

// dominates reports whether a has at least the rate of b at no higher cost, and
// either a higher rate or a lower cost. Both points must be known.
func (a point) dominates(b point) bool {
	return a.known && b.known && a.rate >= b.rate && a.cost <= b.cost && (a.rate > b.rate || a.cost < b.cost)
}

// markFrontier sets Frontier, DominatedBy and Surely.
func (s samples) markFrontier(all []Summary) {
	points := make([]point, len(all))
	for i, r := range all {
		points[i] = point{r.Rate.Mean, r.Cost.PerInstance, r.Cost.Known && r.Rate.Instances > 0}
	}
	for i := range all {
		all[i].Frontier = points[i].known
		for j := range all {
			if !points[j].dominates(points[i]) {
				continue
			}
			surely := s.dominates(j, i)
			if all[i].Frontier || surely && !all[i].Surely {
				all[i].DominatedBy, all[i].Surely = all[j].Name, surely
			}
			all[i].Frontier = false
		}
	}
}

// samples holds the rates and costs of bootstrap samples of the instances that
// have a verdict in all runs: by sample, then by run.
type samples [][]point

// drawSamples draws samples. Each has the same instances for all runs.
func drawSamples(runs []Run, rule MissingRule) samples {
	ids := map[string]int{}
	for _, r := range runs {
		for _, in := range r.Instances {
			if in.countWith(rule).Attempts > 0 && len(in.Attempts) > 0 {
				ids[in.ID]++
			}
		}
	}
	table := make([][]point, len(runs))
	n := 0
	for i, r := range runs {
		for _, in := range r.Instances {
			if ids[in.ID] != len(runs) {
				continue
			}
			p := point{rate: in.countWith(rule).Rate(), known: true}
			for _, a := range in.Attempts {
				p.cost += a.Cost.Dollars / float64(len(in.Attempts))
				p.known = p.known && a.Cost.Known
			}
			table[i] = append(table[i], p)
		}
		n = len(table[i])
	}
	var all samples
	stats.Bootstrap(n, func(sample []int) {
		drawn := make([]point, len(runs))
		for i := range runs {
			p := point{known: true}
			for _, k := range sample {
				c := table[i][k]
				p.rate, p.cost, p.known = p.rate+c.rate, p.cost+c.cost, p.known && c.known
			}
			drawn[i] = point{p.rate / float64(n), p.cost / float64(n), p.known}
		}
		all = append(all, drawn)
	})
	return all
}

// dominates reports whether run j dominates run i in at least 95% of the
// samples.
func (s samples) dominates(j, i int) bool {
	times := 0
	for _, drawn := range s {
		if drawn[j].dominates(drawn[i]) {
			times++
		}
	}
	return len(s) > 0 && float64(times) >= 0.95*float64(len(s))
}

// rank sets RankInterval.
func (s samples) rank(all []Summary) {
	if len(s) == 0 {
		return
	}
	ranks := make([][]float64, len(all))
	for _, d := range s {
		for i := range all {
			rank := 1
			for j := range all {
				if cmp.Compare(d[j].rate, d[i].rate) > 0 {
					rank++
				}
			}
			ranks[i] = append(ranks[i], float64(rank))
		}
	}
	for i := range all {
		p := stats.Percentiles(ranks[i])
		all[i].RankInterval = &[2]int{int(p.Low), int(p.High)}
	}
}
