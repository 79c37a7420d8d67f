package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/stats"
	"github.com/minibench/mini/runner/verdicts"
)

// RepetitionSummary summarizes a run with several repetitions of each instance.
// Other reports describe only the first repetition.
type RepetitionSummary struct {
	PerInstance int `json:"attempts_per_instance"` // largest number of repetitions of an instance
	Requested   int `json:"asked"`                 // requested results of all instances together
	Results     int `json:"results"`
	Graded      int `json:"judged"` // results with a verdict
	// Pass is empty if there is no verdict.
	Pass []PassAt `json:"pass_at,omitempty"`
	// Rate is pass@1 with its interval, as mini compare --missing fail computes it;
	// nil if there is no verdict.
	Rate *stats.Rate `json:"rate,omitempty"`
	// ResolvedByRepetition counts the resolved instances of each repetition.
	// Mean and Deviation are the mean and the standard deviation of their
	// rates.
	ResolvedByRepetition []int   `json:"resolved_by_sample,omitempty"`
	Mean                 float64 `json:"mean_rate"`
	Deviation            float64 `json:"standard_deviation"`
	// MeanReward is the mean reward of all results with a verdict, if some reward is neither
	// 0 nor 1. Pass is empty then, because pass@k is about 0 and 1.
	MeanReward *float64 `json:"mean_reward,omitempty"`
	rewards    float64
	fractional bool
	uneven     bool // the number of results varies by instance
}

// PassAt is pass@k: the probability that at least one of K results is resolved,
// averaged over the instances. The estimate is 1 - C(n-c, K) / C(n, K) for c
// resolved results of n (Chen et al., "Evaluating Large Language Models Trained
// on Code", 2021). A result without a verdict counts as not resolved.
type PassAt struct {
	K    int     `json:"k"`
	Rate float64 `json:"rate"`
	Of   int     `json:"instances"` // instances with at least K requested results
}

// NewRepetitionSummary summarizes the instances of a run with these ids. It returns
// nil if the run has only one repetition.
func NewRepetitionSummary(run *runs.Run, ids []string) *RepetitionSummary {
	instances := slices.DeleteFunc(slices.Clone(run.Instances), func(in runs.Instance) bool {
		return !slices.Contains(ids, in.ID)
	})
	return newRepetitionSummary(run, instances, len(ids))
}

// newRepetitionSummary summarizes instances that have an attempt. requested is the
// number of all selected instances.
func newRepetitionSummary(run *runs.Run, instances []runs.Instance, requested int) *RepetitionSummary {
	s := &RepetitionSummary{PerInstance: run.Manifest.Repetitions()}
	for _, in := range instances {
		for _, r := range in.Repetitions {
			s.PerInstance = max(s.PerInstance, r.Repetition)
		}
	}
	if s.PerInstance <= 1 {
		return nil
	}
	s.uneven = run.Manifest.Repetitions() <= 1
	s.ResolvedByRepetition = make([]int, s.PerInstance)
	all := make([]resultCount, requested) // includes instances without an attempt
	for i := range all {
		all[i].requested = s.PerInstance
		if s.uneven { // no number was requested, for example in an imported run
			all[i].requested = 1
		}
	}
	for i, in := range instances {
		for _, r := range in.Repetitions {
			all[i].requested = max(all[i].requested, r.Repetition)
			all[i].resolved += s.add(r)
		}
	}
	for _, counts := range all {
		s.Requested += counts.requested
	}
	if s.Graded > 0 {
		s.computeRates(all)
	}
	return s
}

// resultCount counts the requested and the resolved results of an instance.
type resultCount struct{ requested, resolved int }

// add counts a result and returns 1 if it is resolved.
func (s *RepetitionSummary) add(r runs.Result) int {
	if !r.Class.IsResult() {
		return 0
	}
	s.Results++
	if r.Verdict == nil || *r.Verdict == string(verdicts.Infrastructure) {
		return 0
	}
	s.Graded++
	n, _ := verdicts.Reward(r.Rewards)
	s.rewards += n
	s.fractional = s.fractional || !verdicts.IsBinary(r.Rewards)
	if *r.Verdict != string(verdicts.Resolved) {
		return 0
	}
	s.ResolvedByRepetition[r.Repetition-1]++
	return 1
}

// computeRates computes Pass, Rate, Mean and Deviation.
func (s *RepetitionSummary) computeRates(all []resultCount) {
	var counts []stats.Count
	for _, c := range all {
		counts = append(counts, stats.Count{Attempts: c.requested, Resolved: c.resolved})
	}
	if s.fractional {
		mean := s.rewards / float64(s.Graded)
		s.MeanReward = &mean
		return
	}
	rate := stats.EstimateRate(counts)
	s.Rate = &rate
	for k := 1; k <= s.PerInstance; k++ {
		if k > 5 && k < s.PerInstance && k&(k-1) != 0 {
			continue // above 5, show only powers of two and the largest k
		}
		sum, n := 0.0, 0
		for _, c := range counts {
			if c.Attempts >= k {
				sum, n = sum+stats.PassAt(c, k), n+1
			}
		}
		s.Pass = append(s.Pass, PassAt{K: k, Rate: sum / float64(n), Of: n})
	}
	if s.uneven {
		return // the repetitions cover different instances
	}
	var squares float64
	for _, n := range s.ResolvedByRepetition {
		rate := float64(n) / float64(len(all))
		s.Mean += rate / float64(s.PerInstance)
		squares += rate * rate / float64(s.PerInstance-1)
	}
	s.Deviation = math.Sqrt(max(0, squares-s.Mean*s.Mean*float64(s.PerInstance)/float64(s.PerInstance-1)))
}

// Doc returns the summary for readers.
func (s *RepetitionSummary) Doc() *doc.Doc {
	d := &doc.Doc{}
	head := fmt.Sprintf("%d attempts per instance: %d of %d have a result", s.PerInstance, s.Results, s.Requested)
	if s.uneven {
		head = "up to " + head
	}
	if s.Graded < s.Results {
		head += fmt.Sprintf(", %d have a verdict", s.Graded)
	}
	d.Paragraph(head, 0, 4)
	if s.MeanReward != nil {
		d.Paragraph(fmt.Sprintf("mean reward %.3f; pass@k is for rewards of 0 and 1", *s.MeanReward), 2, 4)
	}
	if len(s.Pass) == 0 {
		return d
	}
	var pass, resolved []string
	same := !slices.ContainsFunc(s.Pass, func(p PassAt) bool { return p.Of != s.Pass[0].Of })
	for _, p := range s.Pass {
		rate := fmt.Sprintf("pass@%d %s", p.K, unit.Percent(p.Rate))
		if !same {
			rate += " over " + text.Count(p.Of, "instance")
		}
		pass = append(pass, rate)
	}
	if same {
		pass[len(pass)-1] += " over " + text.Count(s.Pass[0].Of, "instance")
	}
	if s.Graded < s.Requested {
		pass[len(pass)-1] += "; attempts without a verdict count as not resolved"
	}
	for _, n := range s.ResolvedByRepetition {
		resolved = append(resolved, fmt.Sprint(n))
	}
	d.Paragraph(strings.Join(pass, ", "), 2, 4)
	if s.uneven {
		return d
	}
	mean := unit.Percent(s.Mean)
	if i := s.Rate.Interval; i != nil {
		mean += fmt.Sprintf(", 95%% interval %s to %s", unit.Percent(i.Low), unit.Percent(i.High))
	}
	d.Paragraph(fmt.Sprintf("resolved by attempt: %s; mean %s; standard deviation %.1f points",
		strings.Join(resolved, ", "), mean, 100*s.Deviation), 2, 4)
	return d
}
