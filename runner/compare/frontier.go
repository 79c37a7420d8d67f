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
	if len(s.common) == 0 {
		return
	}
	points := s.common
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

// samples holds the rates and costs of the instances that have a verdict in all
// runs.
type samples struct {
	instances int
	common    []point   // of all these instances, by run; nil if there are none
	drawn     [][]point // of bootstrap samples of them: by sample, then by run
}

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
	mean := func(sample []int) []point {
		means := make([]point, len(runs))
		for i := range runs {
			p := point{known: true}
			for _, k := range sample {
				c := table[i][k]
				p.rate, p.cost, p.known = p.rate+c.rate, p.cost+c.cost, p.known && c.known
			}
			means[i] = point{p.rate / float64(n), p.cost / float64(n), p.known}
		}
		return means
	}
	all := samples{instances: n}
	if n == 0 {
		return all
	}
	everything := make([]int, n)
	for i := range everything {
		everything[i] = i
	}
	all.common = mean(everything)
	stats.Bootstrap(n, func(sample []int) { all.drawn = append(all.drawn, mean(sample)) })
	return all
}

// minSurely is the number of instances below which resampling says nothing: all
// samples of few instances can be alike.
const minSurely = 5

// dominates reports whether run j dominates run i in at least 95% of the
// samples.
func (s samples) dominates(j, i int) bool {
	times := 0
	for _, drawn := range s.drawn {
		if drawn[j].dominates(drawn[i]) {
			times++
		}
	}
	return s.instances >= minSurely && float64(times) >= 0.95*float64(len(s.drawn))
}

// rank sets RankInterval.
func (s samples) rank(all []Summary) {
	if len(s.drawn) == 0 {
		return
	}
	ranks := make([][]float64, len(all))
	for _, d := range s.drawn {
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
