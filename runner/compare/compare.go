// Package compare compares the results of runs on the same instances: rates,
// paired differences with exact tests, and costs. Load reads a run; New computes
// the comparison; its methods write it as text, CSV or Markdown, and JSON
// encodes it. The formulas are in package stats.
package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/runner/stats"
)

// Format identifies the JSON form of a Result. Fields may be added; existing
// fields keep their names and meaning.
const Format = "mini-compare-1"

// Run is a run with the results of its attempts.
type Run struct {
	Name   string // short, see Names
	Folder string
	// Settings holds what may explain a difference, such as the configuration
	// and the dataset, by name.
	Settings  map[string]string
	Selected  int        // instances selected for the run; at least len(Instances)
	Instances []Instance // ordered by ID
}

// Instance is one instance of a run.
type Instance struct {
	ID string
	// Spec identifies the tests of the instance; "" if unknown.
	Spec string
	// Requested is the number of attempts that the run was to make at the
	// instance, or the number that it made if that is larger.
	Requested int
	// Attempts are the attempts with a verdict of the tests. An attempt without a
	// verdict is missing; the MissingRule decides whether it counts.
	Attempts []Attempt
	// Bill is the cost of all tries, including those that failed, in US
	// dollars.
	Bill Cost
}

// Attempt is one attempt with a verdict.
type Attempt struct {
	Outcome  string // class of the verdict, such as resolved
	Resolved bool
	AtLimit  bool // the attempt ended at a limit
	// Reward is the reward that counts of a Harbor task; nil for other rows.
	Reward  *float64
	Flagged bool // the verdict is suspicious
	Steps   int
	Cost    Cost
}

// Cost is an amount in US dollars. If it is not Known, Dollars is a minimum.
type Cost struct {
	Dollars float64
	Known   bool
}

func (c Cost) add(o Cost) Cost { return Cost{c.Dollars + o.Dollars, c.Known && o.Known} }

// Missing returns the number of attempts without a verdict.
func (in Instance) Missing() int { return max(0, in.Requested-len(in.Attempts)) }

func (in Instance) count() stats.Count {
	c := stats.Count{Attempts: len(in.Attempts)}
	for _, a := range in.Attempts {
		if a.Resolved {
			c.Resolved++
		}
	}
	return c
}

// MissingRule says how attempts without a verdict count.
type MissingRule string

// The rules.
const (
	Drop MissingRule = "drop" // they do not count
	Fail MissingRule = "fail" // they count as not resolved

	allResolved MissingRule = "resolved" // a bound: they count as resolved
)

// countWith returns the count of an instance by a rule.
func (in Instance) countWith(rule MissingRule) stats.Count {
	c := in.count()
	if rule != Drop {
		c.Attempts += in.Missing()
	}
	if rule == allResolved {
		c.Resolved += in.Missing()
	}
	return c
}

// Options controls a comparison.
type Options struct {
	Base    int         // index of the run that the others are compared with
	Missing MissingRule // Drop if empty
	// Detect is the difference, in percentage points, for which the result says
	// how many attempts and instances would detect it; 0 for none.
	Detect float64
	// MaxDrop is the drop, in percentage points, that Gate allows; nil for no
	// gate.
	MaxDrop *float64
}

// Result is a comparison.
type Result struct {
	Format  string      `json:"format"`
	Missing MissingRule `json:"missing"`
	// Differences lists the settings that are not the same in all runs.
	Differences []Setting `json:"settings"`
	Runs        []Summary `json:"runs"` // in the order given
	Base        string    `json:"base"`
	// Pairs compares each other run with the base.
	Pairs []Pair `json:"pairs"`
	// Leaders are the runs that are not separated from the run with the highest
	// rate, by p-values adjusted for all pairs.
	Leaders []string `json:"leaders"`
	Gate    *Gate    `json:"gate,omitempty"`

	wholeNames bool // in sections
}

// Setting is a setting with its value in each run, "" where it is not set.
type Setting struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// New compares runs, which must have different names. It returns an error for
// fewer than two.
func New(runs []Run, o Options) (*Result, error) {
	if len(runs) < 2 {
		return nil, fmt.Errorf("compare runs: %d given, at least 2 needed", len(runs))
	}
	if o.Missing == "" {
		o.Missing = Drop
	}
	r := &Result{Format: Format, Missing: o.Missing, Differences: differingSettings(runs), Base: runs[o.Base].Name, Leaders: []string{}}
	for _, run := range runs {
		r.Runs = append(r.Runs, Summarize(run, o.Missing))
	}
	drawn := drawSamples(runs, o.Missing)
	drawn.markFrontier(r.Runs)
	drawn.rank(r.Runs)
	var p []float64
	withBase := make([]float64, len(runs)) // p-values of the differences from the base
	for i := range runs {
		if i == o.Base {
			continue
		}
		pair := newPair(runs[i], runs[o.Base], o)
		r.Pairs = append(r.Pairs, pair)
		withBase[i] = pair.p()
		p = append(p, pair.p())
	}
	for i, adjusted := range stats.Holm(p) {
		if len(p) > 1 && r.Pairs[i].Difference.P != nil {
			r.Pairs[i].AdjustedP = &adjusted
		}
		r.Pairs[i].conclude()
	}
	r.Leaders = leaders(r.Runs, func(i, j int) float64 {
		switch o.Base {
		case i:
			return withBase[j]
		case j:
			return withBase[i]
		}
		a, b, _, _ := pairUp(runs[i], runs[j], o.Missing)
		return pValue(stats.EstimateDifference(a, b))
	})
	if o.MaxDrop != nil {
		r.Gate = newGate(r.Pairs, *o.MaxDrop)
	}
	return r, nil
}

// differingSettings returns the settings that are not the same in all runs,
// sorted by name.
func differingSettings(runs []Run) []Setting {
	values := map[string][]string{}
	for i, run := range runs {
		for name, value := range run.Settings {
			if values[name] == nil {
				values[name] = make([]string, len(runs))
			}
			values[name][i] = value
		}
	}
	differing := []Setting{}
	for name, v := range values {
		if strings.HasPrefix(name, imagePrefix) && slices.Contains(v, "") {
			continue // a run has not used this image, which is not a setting
		}
		if slices.ContainsFunc(v, func(s string) bool { return s != v[0] }) {
			differing = append(differing, Setting{name, v})
		}
	}
	slices.SortFunc(differing, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return differing
}

// leaders returns the names of the runs with a verdict that no test separates from
// the run with the highest rate. test returns the p-value of the difference of two runs.
func leaders(all []Summary, test func(i, j int) float64) []string {
	best := 0
	for i := range all {
		if all[i].Rate.Mean > all[best].Rate.Mean {
			best = i
		}
	}
	type pair struct{ i, j int }
	var pairs []pair
	var p []float64
	for i := range all {
		for j := i + 1; j < len(all); j++ {
			pairs = append(pairs, pair{i, j})
			p = append(p, test(i, j))
		}
	}
	adjusted := stats.Holm(p)
	names := []string{}
	for i := range all {
		separated := all[i].Rate.Instances == 0
		for k, pr := range pairs {
			if (pr == pair{min(i, best), max(i, best)}) && adjusted[k] < 0.05 {
				separated = true
			}
		}
		if !separated {
			names = append(names, all[i].Name)
		}
	}
	return names
}
