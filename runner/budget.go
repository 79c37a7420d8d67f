package runner

import (
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/runs"
)

// Budget limits the total cost and calls of all attempts in a run's folder, or in
// the folders of batches that run together, including those of earlier sessions. Zero
// means no limit.
//
// A call is counted when it starts, so the limit on calls is exact. The cost of a
// call is known only when it ends, so calls in progress can exceed the limit on
// cost.
type Budget struct {
	Cost  float64 // US dollars; calls of unknown cost are not counted
	Calls int     // model calls (steps), not HTTP requests
}

// isUnlimited reports whether the budget has no limits.
func (b Budget) isUnlimited() bool { return b.Cost <= 0 && b.Calls <= 0 }

// budgetTracker counts the cost and calls that a run has used of its budget.
type budgetTracker struct {
	budget Budget

	mu    sync.Mutex
	cost  float64
	calls int
}

// reserveCall counts a step's model call before it starts. It returns
// agent.ErrBudgetExhausted if the budget is spent.
func (t *budgetTracker) reserveCall() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isSpentLocked() {
		return agent.ErrBudgetExhausted
	}
	t.calls++
	return nil
}

// checkCost returns agent.ErrBudgetExhausted if the limit on cost is reached. The
// agent calls it after a model call that is not a step.
func (t *budgetTracker) checkCost() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.budget.Cost > 0 && t.cost > t.budget.Cost-epsilon {
		return agent.ErrBudgetExhausted
	}
	return nil
}

// isSpent reports whether the budget is spent.
func (t *budgetTracker) isSpent() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isSpentLocked()
}

// epsilon is the tolerance in comparisons of costs, in US dollars. It is less than
// the price of any call and more than the rounding error of a sum.
const epsilon = 1e-9

func (t *budgetTracker) isSpentLocked() bool {
	return t.budget.Cost > 0 && t.cost > t.budget.Cost-epsilon || t.budget.Calls > 0 && t.calls >= t.budget.Calls
}

// addCost adds the cost of a call.
func (t *budgetTracker) addCost(c model.Cost) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cost += float64(c)
}

// addEarlier counts the attempts that a run's folder already has.
func (t *budgetTracker) addEarlier(folder *Folder, store *resultStore) {
	if t.budget.isUnlimited() {
		return
	}
	for id, ir := range store.instances {
		for n := 1; n <= ir.lastAttempt; n++ {
			cost, calls := budgetUsage(folder.Journal(id, n))
			t.cost, t.calls = t.cost+float64(cost), t.calls+calls
		}
	}
}

// budgetUsage returns the cost and calls of an attempt that count against the budget.
// An imported attempt costs nothing; a branch costs only what follows its history.
// For an attempt without an outcome, budgetUsage adds up the calls in the journal.
func budgetUsage(journal string) (cost model.Cost, calls int) {
	h, out, ended, err := runs.ReadEnds(journal)
	if err != nil {
		return 0, 0 // openResultStore has reported unreadable journals
	}
	if _, imported := importOf(journal); imported {
		return 0, 0
	}
	if ended && h.Origin == nil {
		return out.Cost, out.Steps
	}
	totals := runs.SumJournal(journal)
	return totals.Cost, totals.Steps - totals.Inherited
}
