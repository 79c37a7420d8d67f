package fake

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
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

	Wait time.Duration // of the fault stall; 0 means 30 seconds
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
	}
	return nil
}

// instanceStep identifies a reply of the script.
type instanceStep struct {
	instance string
	step     int
}

// pickFault returns the fault of a request, and the rule with its parameters. The caller holds the lock.
func (s *Server) pickFault(r *Request) (Fault, Rule) {
	at := instanceStep{r.Instance, r.Step}
	s.requested[at]++
	for i, rule := range s.config.Plan.Rules {
		if len(rule.Requests) > 0 && !slices.Contains(rule.Requests, r.Number) {
			continue
		}
		rng := s.random(i, at)
		if rule.Probability > 0 && rng.Float64() >= rule.Probability {
			continue
		}
		fault, _ := findFault(rule.Faults[rng.IntN(len(rule.Faults))]) // validated before
		return fault, rule
	}
	return Fault{}, Rule{}
}

// random returns the source of the choices of a rule for a request.
func (s *Server) random(rule int, at instanceStep) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %d %s", rule, s.requested[at], at.step, at.instance) // a hash never fails
	return rand.New(rand.NewPCG(s.config.Plan.Seed, h.Sum64()))                       //nolint:gosec // repeatable choices
}
