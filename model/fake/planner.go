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
	given map[place]map[int]int // by rule
}

func newPlanner(p *Plan) *planner {
	return &planner{p, map[place]int{}, map[place]map[int]int{}}
}

// pick returns the fault of a request, and the rule with what it heeds.
func (p *planner) pick(r *Request) (Fault, Rule, bool) {
	if len(p.plan.Rules) == 0 || len(p.asked) >= maxSeen {
		return Fault{}, Rule{}, false
	}
	at := place{r.Instance, r.Step}
	p.asked[at]++
	for i, rule := range p.plan.Rules {
		if !rule.fits(r) {
			continue
		}
		times := rule.Times
		if times == 0 && (rule.Instance != "" || rule.Step != 0) {
			times = 1
		}
		if times > 0 && p.given[at][i] >= times {
			continue
		}
		chance := p.chance(i, at)
		if rule.Probability > 0 && chance.Float64() >= float64(rule.Probability) {
			continue
		}
		if p.given[at] == nil {
			p.given[at] = map[int]int{}
		}
		p.given[at][i]++
		names := rule.all()
		fault, _ := faultNamed(names[chance.IntN(len(names))]) // checked before
		return fault, rule.heeding(fault.usual), true
	}
	return Fault{}, Rule{}, false
}

func (p *planner) chance(rule int, at place) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %d %s", rule, p.asked[at], at.step, at.instance) // a hash never fails
	return rand.New(rand.NewPCG(p.plan.Seed, h.Sum64()))                          //nolint:gosec // G404: it is to be repeatable
}

func (r Rule) fits(q *Request) bool {
	return (len(r.Requests) == 0 || slices.Contains(r.Requests, q.Number)) &&
		(r.Instance == "" || r.Instance == q.Instance) &&
		(r.Step == 0 || r.Step == q.Step) &&
		(r.API == "" || r.API == q.API) &&
		(r.Stream == nil || *r.Stream == q.Stream)
}

// heeding fills in what the rule leaves open.
func (r Rule) heeding(usual Rule) Rule {
	if r.RetryAfter == 0 {
		r.RetryAfter = usual.RetryAfter
	}
	if r.Wait == 0 {
		r.Wait = usual.Wait
	}
	if r.Size == 0 {
		r.Size = usual.Size
	}
	return r
}
