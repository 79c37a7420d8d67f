package runner

import (
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
)

// Budget bounds what a run may spend, all attempts of its folder together, those
// of earlier sessions too. Zero bounds nothing.
//
// Calls are counted as they begin, so their bound is exact. What a call costs is
// known when it has ended: the calls under way when the money is spent go on,
// and may exceed the bound by what they cost.
type Budget struct {
	Cost  float64 // US dollars, as far as they are known
	Calls int     // of the model: steps, not the requests a step took
}

// none says that nothing is bounded.
func (b Budget) none() bool { return b.Cost <= 0 && b.Calls <= 0 }

// purse is a budget, and what is spent of it.
type purse struct {
	budget Budget

	mu    sync.Mutex
	cost  float64
	calls int
}

// take is asked for before each call of the model. It is ErrBudgetExhausted when
// there is nothing left.
func (p *purse) take() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.empty() {
		return agent.ErrBudgetExhausted
	}
	p.calls++
	return nil
}

// afford is asked after a call that is no step: it counts none.
func (p *purse) afford() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.budget.Cost > 0 && p.cost > p.budget.Cost-nothing {
		return agent.ErrBudgetExhausted
	}
	return nil
}

// spent says whether there is nothing left.
func (p *purse) spent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.empty()
}

// nothing is less than any price of a call, and more than what sums of dollars
// are off by.
const nothing = 1e-9

func (p *purse) empty() bool {
	return p.budget.Cost > 0 && p.cost > p.budget.Cost-nothing || p.budget.Calls > 0 && p.calls >= p.budget.Calls
}

// pay is told what a call cost.
func (p *purse) pay(c model.Cost) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cost += float64(c)
}

// newPurse knows what the attempts in the folder have spent.
func (b *Batch) newPurse(book *book) *purse {
	p := &purse{budget: b.Budget}
	if b.Budget.none() {
		return p
	}
	for id, e := range book.entries {
		for n := 1; n <= e.last; n++ {
			cost, calls := spent(b.Folder.Journal(id, n))
			p.cost, p.calls = p.cost+float64(cost), p.calls+calls
		}
	}
	return p
}

// spent is what a run paid for an attempt: nothing for one that was imported, and
// of a branch what came after its history. A journal without an outcome is that of
// a mini that was killed: its calls are added up.
func spent(journal string) (cost model.Cost, calls int) {
	out, ended, err := last(journal)
	if err != nil {
		return 0, 0 // the book has complained of what it needs
	}
	if _, imported := importOf(journal); imported {
		return 0, 0
	}
	if ended && headerOf(journal).Origin == nil {
		return out.Cost, out.Steps
	}
	t := tally(journal)
	return t.Cost, t.Steps - t.Inherited
}
