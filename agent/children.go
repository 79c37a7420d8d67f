package agent

import (
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Spending is what calls of a model took.
type Spending struct {
	Steps int // calls
	Usage model.Usage
	Cost  model.Cost
}

// Add is both together.
func (s Spending) Add(o Spending) Spending {
	return Spending{s.Steps + o.Steps, s.Usage.Add(o.Usage), s.Cost + o.Cost}
}

// Within is the agent with limits that are no higher than these; 0 is no limit.
func (a *Agent) Within(l Limits) *Agent {
	lowered := *a
	lowered.cfg.StepLimit = lower(a.cfg.StepLimit, l.Steps)
	lowered.cfg.CostLimit = lower(a.cfg.CostLimit, l.Cost)
	return &lowered
}

func lower[T int | float64](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Left is what the attempt may still spend; 0 is no limit. It is
// ErrLimitsExceeded where nothing is left.
func (a *Attempt) Left() (Limits, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left()
}

func (a *Attempt) left() (Limits, error) {
	l, steps, cost := a.run.limits, a.run.steps+a.begun, a.run.cost+a.spent.Cost
	if limitReached(l, steps, cost) {
		return Limits{}, ErrLimitsExceeded
	}
	if l.Steps > 0 {
		l.Steps -= steps
	}
	if l.Cost > 0 {
		l.Cost -= float64(cost)
	}
	return l, nil
}

// Allow is asked before each call that a child makes of its model, and is its
// Session.Allow: the call counts as a step of this attempt, too, and of all that
// are above it. The bound of steps is exact; of money, the calls under way when
// it is spent go on, and may exceed the bound by what they cost.
func (a *Attempt) Allow() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.left(); err != nil {
		return err
	}
	if a.run.Allow != nil {
		if err := a.run.Allow(); err != nil {
			return err
		}
	}
	a.begun++
	return nil
}

// Afford is asked after a child's call that is no step, and is its Session.Afford.
func (a *Attempt) Afford() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.left(); err != nil {
		return err
	}
	if a.run.Afford != nil {
		return a.run.Afford()
	}
	return nil
}

// Spend says what a child's call took, and records it.
func (a *Attempt) Spend(s trajectories.Spent) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := Spending{1, s.Usage, s.Cost}
	if s.Summary {
		one.Steps = 0
	}
	a.spent = a.spent.Add(one)
	a.begun = max(a.begun, a.spent.Steps)
	_, err := a.run.record(trajectories.TypeSpent, s)
	return err
}

// total is what the attempt has spent, its children's part included.
func (r *run) total() Spending {
	r.asking.mu.Lock()
	defer r.asking.mu.Unlock()
	return Spending{r.steps, r.usage, r.cost}.Add(r.asking.spent)
}
