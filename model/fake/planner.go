package fake

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// place is where in a batch a request belongs.
type place struct {
	instance string
	step     int
}

// planner picks faults; its owner locks it.
type planner struct {
	plan  *Plan
	asked map[place]int
}

func newPlanner(p *Plan) *planner {
	return &planner{p, map[place]int{}}
}

// pick returns the fault of a request, and the rule with what it heeds.
func (p *planner) pick(r *Request) (Fault, Rule, bool) {
	if len(p.plan.Rules) == 0 || len(p.asked) >= maxSeen {
		return Fault{}, Rule{}, false
	}
	at := place{r.Instance, r.Step}
	p.asked[at]++
	for i, rule := range p.plan.Rules {
		if len(rule.Requests) > 0 && !slices.Contains(rule.Requests, r.Number) {
			continue
		}
		chance := p.chance(i, at)
		if rule.Probability > 0 && chance.Float64() >= rule.Probability {
			continue
		}
		fault, _ := faultNamed(rule.Faults[chance.IntN(len(rule.Faults))]) // checked before
		return fault, rule.heeding(fault.usual), true
	}
	return Fault{}, Rule{}, false
}

func (p *planner) chance(rule int, at place) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %d %s", rule, p.asked[at], at.step, at.instance) // a hash never fails
	return rand.New(rand.NewPCG(p.plan.Seed, h.Sum64()))                          //nolint:gosec // G404: it is to be repeatable
}

// heeding fills in what the rule leaves open.
func (r Rule) heeding(usual Rule) Rule {
	if r.RetryAfter == 0 {
		r.RetryAfter = usual.RetryAfter
	}
	if r.Wait == 0 {
		r.Wait = usual.Wait
	}
	return r
}
