package fake

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agnivade/levenshtein"
)

// Plan is what goes wrong, and when. The first rule that fits a request is
// what happens to it.
type Plan struct {
	// Seed makes other choices of probability. They depend on the seed, the
	// instance, the step and how often that was asked, and on nothing else:
	// not on the order in which a batch's requests come.
	Seed  uint64
	Rules []Rule
}

// Rule gives one of its faults to the requests for which all that it says is
// true.
type Rule struct {
	Requests    []int    // by number, from 1; empty is all
	Probability float64  // 0 is always
	Faults      []string // one of them, by chance

	// What some faults heed; 0 is what Faults says.
	RetryAfter, Wait time.Duration
}

// Validate returns the first thing that is wrong.
func (p *Plan) Validate() error {
	for i, r := range p.Rules {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
}

// Validate returns the first thing that is wrong.
func (r Rule) Validate() error {
	for _, name := range r.Faults {
		if _, ok := faultNamed(name); !ok {
			text := fmt.Sprintf("there is no fault %.60q", name)
			for _, f := range faults {
				if levenshtein.ComputeDistance(f.Name, clip(name)) <= 2 {
					text += "; did you mean " + f.Name + "?"
					break
				}
			}
			return errors.New(text)
		}
	}
	switch {
	case len(r.Faults) == 0:
		return errors.New("no fault is named")
	case slices.ContainsFunc(r.Requests, func(n int) bool { return n < 1 }):
		return errors.New("requests count from 1")
	case !(r.Probability >= 0 && r.Probability <= 1):
		return errors.New("a probability is from 0 to 1")
	case r.Wait < 0 || r.RetryAfter < 0:
		return errors.New("times cannot be negative")
	}
	return nil
}
