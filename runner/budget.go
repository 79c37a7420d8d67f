package runner

import (
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
)

// Budget limits what a run may spend, over all attempts in its folder, including
// those of earlier sessions. Zero means no limit.
//
// A call is counted when it starts, so the limit on calls is exact. Its cost is
// known when it ends: calls in progress when the money runs out may exceed the
// limit.
type Budget struct {
	Cost  float64 // US dollars; calls of unknown cost are not counted
	Calls int     // model calls (steps), not HTTP requests
}

// isUnlimited reports whether the budget has no limits.
func (b Budget) isUnlimited() bool { return b.Cost <= 0 && b.Calls <= 0 }

// budgetTracker counts what is spent of a budget.
type budgetTracker struct {
	budget Budget

	mu    sync.Mutex
	cost  float64
	calls int
}

// reserveCall is called before each model call. It returns ErrBudgetExhausted if
// the budget is spent.
func (p *budgetTracker) reserveCall() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isSpentLocked() {
		return agent.ErrBudgetExhausted
	}
	p.calls++
	return nil
}

// checkCost is called after a call that is not a step.
func (p *budgetTracker) checkCost() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.budget.Cost > 0 && p.cost > p.budget.Cost-epsilon {
		return agent.ErrBudgetExhausted
	}
	return nil
}

// isSpent reports whether the budget is spent.
func (p *budgetTracker) isSpent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isSpentLocked()
}

// epsilon is less than the price of any call, and more than the rounding error of
// a sum of dollars.
const epsilon = 1e-9

func (p *budgetTracker) isSpentLocked() bool {
	return p.budget.Cost > 0 && p.cost > p.budget.Cost-epsilon || p.budget.Calls > 0 && p.calls >= p.budget.Calls
}

// addCost adds the cost of a call.
func (p *budgetTracker) addCost(c model.Cost) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cost += float64(c)
}

// newBudgetTracker counts the cost and calls of the attempts in the folder.
func (b *Batch) newBudgetTracker(store *resultStore) *budgetTracker {
	p := &budgetTracker{budget: b.Budget}
	if b.Budget.isUnlimited() {
		return p
	}
	for id, e := range store.instances {
		for n := 1; n <= e.lastAttempt; n++ {
			cost, calls := spentOn(b.Folder.Journal(id, n))
			p.cost, p.calls = p.cost+float64(cost), p.calls+calls
		}
	}
	return p
}

// spentOn returns what the run paid for an attempt: nothing if it was imported, and
// only what follows the history if it is a branch. Without an outcome, the calls
// in the journal are added up.
func spentOn(journal string) (cost model.Cost, calls int) {
	out, ended, err := lastOutcome(journal)
	if err != nil {
		return 0, 0 // openResultStore has reported journals that it needs
	}
	if _, imported := importOf(journal); imported {
		return 0, 0
	}
	if ended && headerOf(journal).Origin == nil {
		return out.Cost, out.Steps
	}
	t := sumJournal(journal)
	return t.Cost, t.Steps - t.Inherited
}
