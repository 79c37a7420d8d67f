package fake

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Plan says which requests fail. The first matching rule applies.
type Plan struct {
	// Seed varies the random choices. They depend only on the seed, the instance,
	// the step and how often that step was requested, not on the order of
	// requests.
	Seed  uint64
	Rules []Rule
}

// Rule gives one of its faults to the requests that match all its conditions.
type Rule struct {
	Requests    []int    // numbers of requests, from 1; empty matches all
	Probability float64  // 0 means always
	Faults      []string // one is chosen at random

	// Parameters of some faults; 0 means the fault's default.
	RetryAfter, Wait time.Duration
}

// Validate returns the first error.
func (p *Plan) Validate() error {
	for i, r := range p.Rules {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
}

// Validate returns the first error.
func (r Rule) Validate() error {
	for _, name := range r.Faults {
		if _, ok := findFault(name); !ok {
			return fmt.Errorf("unknown fault %.60q", name)
		}
	}
	switch {
	case len(r.Faults) == 0:
		return errors.New("no faults")
	case slices.ContainsFunc(r.Requests, func(n int) bool { return n < 1 }):
		return errors.New("request numbers start at 1")
	case !(r.Probability >= 0 && r.Probability <= 1):
		return errors.New("probability must be from 0 to 1")
	case r.Wait < 0 || r.RetryAfter < 0:
		return errors.New("times cannot be negative")
	}
	return nil
}
