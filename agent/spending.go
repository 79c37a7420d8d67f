package agent

import (
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Spending is the number of steps, and the usage and cost of all model calls.
type Spending struct {
	Steps int // model calls, without those for summaries
	Usage model.Usage
	Cost  model.Cost
}

// Add returns the sum of s and o.
func (s Spending) Add(o Spending) Spending {
	return Spending{s.Steps + o.Steps, s.Usage.Add(o.Usage), s.Cost + o.Cost}
}

// WithLimits returns a copy of the agent whose limits are at most l; 0 means no
// limit.
func (a *Agent) WithLimits(l Limits) *Agent {
	limited := *a
	limited.cfg.StepLimit = lowerLimit(a.cfg.StepLimit, l.Steps)
	limited.cfg.CostLimit = lowerLimit(a.cfg.CostLimit, l.Cost)
	return &limited
}

func lowerLimit[T int | float64](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Remaining returns what the attempt may still spend; 0 means no limit. The
// error is ErrLimitsExceeded if nothing is left.
func (a *Attempt) Remaining() (Limits, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.remaining()
}

func (a *Attempt) remaining() (Limits, error) {
	l, steps, cost := a.run.limits, a.run.steps+a.startedCalls, a.run.cost+a.spent.Cost
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

// ReserveCall is the Session.ReserveCall of subagents. It counts a subagent's
// call as a step of this attempt and of its parents. The step limit is exact.
// The calls under way when the cost limit is reached may exceed it.
func (a *Attempt) ReserveCall() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.remaining(); err != nil {
		return err
	}
	if a.run.ReserveCall != nil {
		if err := a.run.ReserveCall(); err != nil {
			return err
		}
	}
	a.startedCalls++
	return nil
}

// CheckBudget returns an error if this attempt or the run has reached a limit.
// It is the Session.CheckBudget of subagents.
func (a *Attempt) CheckBudget() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.remaining(); err != nil {
		return err
	}
	if a.run.CheckBudget != nil {
		return a.run.CheckBudget()
	}
	return nil
}

// RecordChildCall records a subagent's call and adds it to the attempt's
// spending.
func (a *Attempt) RecordChildCall(s trajectories.ChildCall) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	call := Spending{1, s.Usage, s.Cost}
	if s.Summary {
		call.Steps = 0
	}
	a.spent = a.spent.Add(call)
	a.startedCalls = max(a.startedCalls, a.spent.Steps)
	_, err := a.run.record(trajectories.TypeChildCall, s)
	return err
}

// total returns what the attempt has spent, including its subagents.
func (r *run) total() Spending {
	r.toolAttempt.mu.Lock()
	defer r.toolAttempt.mu.Unlock()
	return Spending{r.steps, r.usage, r.cost}.Add(r.toolAttempt.spent)
}
