package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
)

// Samples sums up a run that was asked for several results an instance. All else
// that is told of such a run is about the first of them.
type Samples struct {
	Each    int `json:"attempts_per_instance"` // that were asked for, at most
	Asked   int `json:"asked"`                 // of all instances together
	Results int `json:"results"`
	Judged  int `json:"judged"` // results with a verdict that the tests gave
	// Pass is empty while there is no verdict.
	Pass []PassAt `json:"pass_at,omitempty"`
	// Resolved is how many instances each sample resolves, from the first on; Mean
	// and Deviation are those of their rates.
	Resolved  []int   `json:"resolved_by_sample,omitempty"`
	Mean      float64 `json:"mean_rate"`
	Deviation float64 `json:"standard_deviation"`
	uneven    bool    // instances have different numbers of them
}

// PassAt is the chance that at least one of K results of an instance is
// resolved, averaged over the instances: 1 - C(n-c, K) / C(n, K) where c of n
// are (Chen et al., "Evaluating Large Language Models Trained on Code", 2021).
// What has no verdict counts as not resolved, as everywhere.
type PassAt struct {
	K    int     `json:"k"`
	Rate float64 `json:"rate"`
	Of   int     `json:"instances"` // that were to have so many results
}

// SamplesOf sums up these instances of a run; nil where nobody asked for more
// than one result.
func SamplesOf(run *runner.Run, ids []string) *Samples {
	instances := slices.DeleteFunc(slices.Clone(run.Instances), func(in runner.Instance) bool { return !slices.Contains(ids, in.ID) })
	return newSamples(run, instances, len(ids))
}

// Write shows it to people, in lines of at most width characters.
func (s *Samples) Write(w io.Writer, width int) error {
	_, err := io.WriteString(w, "\n"+s.text(width))
	return err
}

// newSamples is nil where nobody asked for more than one. Instances are those
// of the asked ones that have an attempt.
func newSamples(run *runner.Run, instances []runner.Instance, asked int) *Samples {
	s := &Samples{Each: run.Manifest.Samples()}
	for _, in := range instances {
		for _, r := range in.Samples {
			s.Each = max(s.Each, r.Sample)
		}
	}
	if s.Each <= 1 {
		return nil
	}
	s.uneven = run.Manifest.Samples() <= 1
	s.Resolved = make([]int, s.Each)
	all := make([]drawn, asked) // those without a result have none resolved
	for i := range all {
		all[i].of = s.Each
		if s.uneven { // nobody said how many: as an import, that has what there was
			all[i].of = 1
		}
	}
	for i, in := range instances {
		for _, r := range in.Samples {
			all[i].of = max(all[i].of, r.Sample)
			all[i].resolved += s.add(r)
		}
	}
	for _, d := range all {
		s.Asked += d.of
	}
	if s.Judged > 0 {
		s.rates(all)
	}
	return s
}

// drawn is how many results an instance was to have, and has resolved.
type drawn struct{ of, resolved int }

// add counts a result, and says how many it adds to the resolved.
func (s *Samples) add(r runner.Result) int {
	if !r.Class.Counts() {
		return 0
	}
	s.Results++
	if r.Verdict == nil || *r.Verdict == string(verdicts.Infrastructure) {
		return 0
	}
	s.Judged++
	if *r.Verdict != string(verdicts.Resolved) {
		return 0
	}
	s.Resolved[r.Sample-1]++
	return 1
}

func (s *Samples) rates(all []drawn) {
	for k := 1; k <= s.Each; k++ {
		if k > 5 && k < s.Each && k&(k-1) != 0 {
			continue // of many the powers of two are enough
		}
		sum, n := 0.0, 0
		for _, d := range all {
			if d.of >= k {
				sum, n = sum+passAt(d.of, d.resolved, k), n+1
			}
		}
		s.Pass = append(s.Pass, PassAt{K: k, Rate: sum / float64(n), Of: n})
	}
	if s.uneven {
		return // the samples are not of the same instances
	}
	var squares float64
	for _, n := range s.Resolved {
		rate := float64(n) / float64(len(all))
		s.Mean += rate / float64(s.Each)
		squares += rate * rate / float64(s.Each-1)
	}
	s.Deviation = math.Sqrt(max(0, squares-s.Mean*s.Mean*float64(s.Each)/float64(s.Each-1)))
}

// passAt is the chance that one of k drawn from n is among the c that are
// resolved. The quotient of binomials is multiplied out, so that it is exact
// where they would overflow.
func passAt(n, c, k int) float64 {
	if n-c < k {
		return 1
	}
	miss := 1.0
	for i := n - c + 1; i <= n; i++ {
		miss *= 1 - float64(k)/float64(i)
	}
	return 1 - miss
}

// text is for people, in lines of at most width characters.
func (s *Samples) text(width int) string {
	var b strings.Builder
	head := fmt.Sprintf("%d attempts an instance: %d of %d have a result", s.Each, s.Results, s.Asked)
	if s.uneven {
		head = "up to " + head
	}
	if s.Judged < s.Results {
		head += fmt.Sprintf(", %d of these a verdict", s.Judged)
	}
	b.WriteString(paragraph(head, width, 0, 4))
	if len(s.Pass) == 0 {
		return b.String()
	}
	var pass, resolved []string
	same := !slices.ContainsFunc(s.Pass, func(p PassAt) bool { return p.Of != s.Pass[0].Of })
	for _, p := range s.Pass {
		text := fmt.Sprintf("pass@%d %.1f%%", p.K, 100*p.Rate)
		if !same {
			text += " over " + Count(p.Of, "instance")
		}
		pass = append(pass, text)
	}
	if same {
		pass[len(pass)-1] += " over " + Count(s.Pass[0].Of, "instance")
	}
	for _, n := range s.Resolved {
		resolved = append(resolved, fmt.Sprint(n))
	}
	b.WriteString(paragraph(strings.Join(pass, ", "), width, 2, 4))
	if s.uneven {
		return b.String()
	}
	b.WriteString(paragraph(fmt.Sprintf("resolved by each: %s; mean %.1f%%, standard deviation %.1f points",
		strings.Join(resolved, ", "), 100*s.Mean, 100*s.Deviation), width, 2, 4))
	return b.String()
}
