package compare

import (
	"math"

	"github.com/minibench/mini/runner/stats"
)

// Summary describes one run by itself.
type Summary struct {
	Name   string `json:"name"`
	Folder string `json:"folder,omitempty"`
	// Selected counts the instances that were selected for the run.
	Selected int `json:"selected"`
	// MissingAttempts counts the attempts without a verdict at instances that
	// were started.
	MissingAttempts int `json:"missing_attempts"`
	// Attempts is the smallest number of counted attempts among the instances that
	// have any, and AttemptsMax the largest.
	Attempts    int `json:"attempts_min"`
	AttemptsMax int `json:"attempts_max"`
	Counted     int `json:"attempts"` // counted attempts of all instances
	// Resolved counts resolved attempts.
	Resolved int `json:"resolved_attempts"`
	// Rate is over the instances with at least one counted attempt. The
	// MissingRule decides whether an attempt without a verdict is counted.
	Rate stats.Rate `json:"resolved"`
	// Bounds is the rate of the selected instances if all missing verdicts were
	// unresolved, and if all were resolved.
	Bounds stats.Interval `json:"bounds"`
	// Pass lists pass@k and pass^k for k up to Attempts; empty if that is less
	// than 2.
	Pass []PassAt `json:"pass,omitempty"`
	// MeanReward is the mean reward of the counted attempts at Harbor tasks, if some reward
	// is neither 0 nor 1; Pass is empty then.
	MeanReward *float64 `json:"mean_reward,omitempty"`
	// Variance and RerunNoise are nil without repeated attempts. RerunNoise is
	// the difference that the rates of two runs of the same agent do not exceed
	// in 95% of cases.
	Variance   *stats.Variance `json:"variance,omitempty"`
	RerunNoise *float64        `json:"rerun_noise,omitempty"`

	Cost CostSummary `json:"cost"`
	// RankInterval is the range of ranks in 95% of bootstrap samples of the
	// instances that have a verdict in all runs; nil if there are none.
	RankInterval *[2]int `json:"rank_interval,omitempty"`
	// Frontier reports that the run is on the Pareto frontier: its cost is known,
	// and no other run is at least as good in rate and cost and better in one of
	// them. If there is such a run, DominatedBy names one, and Surely reports that
	// it is such a run in at least 95% of bootstrap samples.
	Frontier    bool   `json:"frontier"`
	DominatedBy string `json:"dominated_by,omitempty"`
	Surely      bool   `json:"dominated_surely,omitempty"`
	// ByLimit lists the rates within numbers of steps.
	ByLimit []LimitRate `json:"by_step_limit,omitempty"`
}

// PassAt is pass@k, at least one of k attempts resolved, and pass^k, all of
// them. Errors are standard errors; nil for one instance.
type PassAt struct {
	K         int      `json:"k"`
	Any       float64  `json:"pass_at"`
	AnyError  *float64 `json:"pass_at_error,omitempty"`
	All       float64  `json:"pass_all"`
	AllError  *float64 `json:"pass_all_error,omitempty"`
	Instances int      `json:"instances"`
}

// CostSummary is what a run cost, in US dollars. If it is not Known, some calls
// have no price, and the amounts are minimums.
type CostSummary struct {
	Known bool `json:"known"`
	// PerInstance is the mean cost of an attempt with a verdict: first the mean of
	// each instance, then of all. WithRetries is the cost of all tries, including
	// failed ones, divided by the number of instances.
	PerInstance float64 `json:"per_instance"`
	WithRetries float64 `json:"per_instance_with_retries"`
	Total       float64 `json:"total"` // of all tries
	// PerResolved is Total divided by the number of resolved attempts; nil if none
	// is.
	PerResolved *float64 `json:"per_resolved"`
}

// LimitRate is the rate if only the attempts that were resolved within Steps steps
// counted as resolved. An agent with such a limit may do better, because it submits
// its changes at the limit.
type LimitRate struct {
	Steps    int             `json:"steps"`
	Rate     float64         `json:"rate"`
	Interval *stats.Interval `json:"interval,omitempty"` // nil if it cannot be estimated
}

// Summarize describes a run by itself, without its rank and the frontier.
func Summarize(run Run, rule MissingRule) Summary {
	s := Summary{Name: run.Name, Folder: run.Folder, Selected: max(run.Selected, len(run.Instances)), Cost: CostSummary{Known: true}}
	counts := run.counts(rule)
	total := Cost{Known: true}
	var costs []float64
	for _, in := range run.Instances {
		s.MissingAttempts += in.Missing()
		total = total.add(in.Bill)
		mean := Cost{Known: true}
		for _, a := range in.Attempts {
			mean = mean.add(a.Cost)
		}
		if n := len(in.Attempts); n > 0 {
			costs = append(costs, mean.Dollars/float64(n))
		}
		s.Cost.Known = s.Cost.Known && mean.Known
	}
	for i, c := range counts {
		s.Resolved += c.Resolved
		s.Counted += c.Attempts
		s.AttemptsMax = max(s.AttemptsMax, c.Attempts)
		if i == 0 || c.Attempts < s.Attempts {
			s.Attempts = c.Attempts
		}
	}
	s.Rate = stats.EstimateRate(counts)
	s.Bounds = run.bounds(s.Selected)
	if s.MeanReward = run.meanReward(); s.MeanReward == nil {
		s.Pass = passAt(counts, s.Attempts)
	}
	if v, ok := stats.EstimateVariance(counts); ok {
		s.Variance = &v
	}
	if noise, ok := stats.RerunNoise(counts); ok {
		s.RerunNoise = &noise
	}
	s.Cost.Known = s.Cost.Known && total.Known
	s.Cost.Total = total.Dollars
	if len(costs) > 0 {
		s.Cost.PerInstance, _ = stats.Mean(costs)
	}
	if len(run.Instances) > 0 {
		s.Cost.WithRetries = total.Dollars / float64(len(run.Instances))
	}
	if s.Resolved > 0 {
		each := total.Dollars / float64(s.Resolved)
		s.Cost.PerResolved = &each
	}
	s.ByLimit = rateByLimit(run)
	return s
}

// meanReward returns the mean reward of the attempts; nil if resolved or not says it all.
func (r Run) meanReward() *float64 {
	sum, n, isFractional := 0.0, 0, false
	for _, in := range r.Instances {
		for _, a := range in.Attempts {
			if n++; a.Reward != nil {
				sum += *a.Reward
				isFractional = isFractional || *a.Reward != 0 && *a.Reward != 1
			}
		}
	}
	if !isFractional {
		return nil
	}
	mean := sum / float64(n)
	return &mean
}

// counts returns the counts of the instances with at least one counted attempt.
func (r Run) counts(rule MissingRule) []stats.Count {
	var counts []stats.Count
	for _, in := range r.Instances {
		if c := in.countWith(rule); c.Attempts > 0 {
			counts = append(counts, c)
		}
	}
	return counts
}

// bounds returns the rates of the selected instances with all missing verdicts
// unresolved, and with all resolved.
func (r Run) bounds(selected int) stats.Interval {
	if selected == 0 {
		return stats.Interval{Low: 0, High: 1}
	}
	low, high := 0.0, float64(selected-len(r.Instances))
	for _, in := range r.Instances {
		low += in.countWith(Fail).Rate()
		if most := in.countWith(allResolved); most.Attempts > 0 {
			high += most.Rate()
		} else {
			high++
		}
	}
	return stats.Interval{Low: low / float64(selected), High: high / float64(selected)}
}

func passAt(counts []stats.Count, attempts int) []PassAt {
	if attempts < 2 {
		return nil
	}
	var all []PassAt
	for k := 1; k <= attempts; k++ {
		if k > 5 && k < attempts && k&(k-1) != 0 {
			continue // above 5 only powers of two and the largest k
		}
		anyOf, allOf := make([]float64, len(counts)), make([]float64, len(counts))
		for i, c := range counts {
			anyOf[i], allOf[i] = stats.PassAt(c, k), stats.PassAll(c, k)
		}
		p := PassAt{K: k, Instances: len(counts)}
		p.Any, p.AnyError = meanAndError(anyOf)
		p.All, p.AllError = meanAndError(allOf)
		all = append(all, p)
	}
	return all
}

func meanAndError(values []float64) (float64, *float64) {
	mean, se := stats.Mean(values)
	if math.IsNaN(se) {
		return mean, nil
	}
	return mean, &se
}

// rateByLimit returns the rate at some step counts, up to the largest.
func rateByLimit(run Run) []LimitRate {
	most := 0
	for _, in := range run.Instances {
		for _, a := range in.Attempts {
			most = max(most, min(a.Steps, maxSteps))
		}
	}
	if most == 0 {
		return nil
	}
	var rates []LimitRate
	for _, limit := range stepLimits(most) {
		var counts []stats.Count
		for _, in := range run.Instances {
			c := stats.Count{Attempts: len(in.Attempts)}
			for _, a := range in.Attempts {
				if a.Resolved && min(a.Steps, maxSteps) <= limit {
					c.Resolved++
				}
			}
			if c.Attempts > 0 {
				counts = append(counts, c)
			}
		}
		rate := stats.EstimateRate(counts)
		rates = append(rates, LimitRate{Steps: limit, Rate: rate.Mean, Interval: rate.Interval})
	}
	return rates
}

// stepLimits returns the multiples of a round number below most (at most nine),
// and most.
func stepLimits(most int) []int {
	width := 1
	for i := 0; width < most/10; i++ {
		width = []int{1, 2, 5}[i%3] * int(math.Pow10(i/3))
	}
	var limits []int
	for limit := width; limit < most; limit += width {
		limits = append(limits, limit)
	}
	return append(limits, most)
}
