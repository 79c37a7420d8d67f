package fake

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// instanceStep identifies a reply of the script.
type instanceStep struct {
	instance string
	step     int
}

// planner picks faults. Callers of its methods hold a lock.
type planner struct {
	plan      *Plan
	requested map[instanceStep]int // number of requests for each reply
}

func newPlanner(p *Plan) *planner {
	return &planner{p, map[instanceStep]int{}}
}

// pick returns the fault of a request, and the rule with its parameters.
func (p *planner) pick(r *Request) (Fault, Rule, bool) {
	if len(p.plan.Rules) == 0 {
		return Fault{}, Rule{}, false
	}
	at := instanceStep{r.Instance, r.Step}
	p.requested[at]++
	for i, rule := range p.plan.Rules {
		if len(rule.Requests) > 0 && !slices.Contains(rule.Requests, r.Number) {
			continue
		}
		rng := p.random(i, at)
		if rule.Probability > 0 && rng.Float64() >= rule.Probability {
			continue
		}
		fault, _ := findFault(rule.Faults[rng.IntN(len(rule.Faults))]) // validated before
		return fault, rule.withDefaults(fault.defaults), true
	}
	return Fault{}, Rule{}, false
}

// random returns the source of the choices of a rule for a request.
func (p *planner) random(rule int, at instanceStep) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %d %s", rule, p.requested[at], at.step, at.instance) // a hash never fails
	return rand.New(rand.NewPCG(p.plan.Seed, h.Sum64()))                              //nolint:gosec // repeatable choices
}

// withDefaults sets the parameters that the rule leaves at 0.
func (r Rule) withDefaults(defaults Rule) Rule {
	if r.RetryAfter == 0 {
		r.RetryAfter = defaults.RetryAfter
	}
	if r.Wait == 0 {
		r.Wait = defaults.Wait
	}
	return r
}
