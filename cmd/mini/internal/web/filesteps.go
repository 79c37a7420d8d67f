package web

import (
	"cmp"
	"slices"

	"github.com/minibench/mini/cmd/mini/internal/web/chart"
	"github.com/minibench/mini/datasets"
)

// StepChoice says which attempts a file holds with all steps.
type StepChoice string

// The choices.
const (
	FitSteps    StepChoice = ""       // as many as fit into a limit, see allAttempts for the order
	NoSteps     StepChoice = "none"   // none
	FlipSteps   StepChoice = "flips"  // those at instances where the runs differ
	FailedSteps StepChoice = "failed" // those that did not resolve their instance
	AllSteps    StepChoice = "all"    // all
)

// StepChoices are the choices that have a name.
var StepChoices = []StepChoice{NoSteps, FlipSteps, FailedSteps, AllSteps}

// fileAttempt is an attempt with what decides whether a file holds its steps.
type fileAttempt struct {
	run     *run
	id      string
	attempt int
	class   chart.Class // of its cell
	flips   bool        // the runs differ at its instance
}

// classOrder is the order in which attempts are kept: what readers look at first.
var classOrder = []chart.Class{
	chart.Infrastructure, chart.None, chart.Limit, chart.Unresolved, chart.Submitted, chart.Resolved,
}

func (a fileAttempt) rank() int {
	if a.flips {
		return -1
	}
	return slices.Index(classOrder, a.class)
}

// allAttempts returns the attempts of all runs: first those at instances where the runs differ,
// then errors, limits, unresolved and resolved ones; each by instance, so that what differs stands
// side by side.
func (v *Viewer) allAttempts() ([]fileAttempt, error) {
	var all []fileAttempt
	flips, err := v.flips()
	if err != nil {
		return nil, err
	}
	order := map[*run]int{}
	for i, r := range v.all() {
		order[r] = i
		s, err := r.load()
		if err != nil {
			return nil, err
		}
		for _, in := range s.Run.Instances {
			for _, a := range in.AllAttempts() {
				all = append(all, fileAttempt{
					run: r, id: in.ID, attempt: a.Number, class: newCell(a.Number, a.Result).Class, flips: flips[in.ID],
				})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b fileAttempt) int {
		return cmp.Or(
			cmp.Compare(a.rank(), b.rank()),
			datasets.CompareNatural(a.id, b.id),
			cmp.Compare(order[a.run], order[b.run]),
			cmp.Compare(a.attempt, b.attempt),
		)
	})
	return all, nil
}

// flips returns the instances at which two runs resolved different shares of their attempts.
func (v *Viewer) flips() (map[string]bool, error) {
	first, flips := map[string]float64{}, map[string]bool{}
	for _, r := range v.all() {
		s, err := r.load()
		if err != nil {
			return nil, err
		}
		for _, in := range s.Compared.Instances {
			if len(in.Attempts) == 0 {
				continue
			}
			resolved := 0
			for _, a := range in.Attempts {
				if a.Resolved {
					resolved++
				}
			}
			share := float64(resolved) / float64(len(in.Attempts))
			if other, ok := first[in.ID]; ok && other != share {
				flips[in.ID] = true
			}
			first[in.ID] = share
		}
	}
	return flips, nil
}

// stepBudget decides which attempts a file holds with all steps.
type stepBudget struct {
	choice StepChoice
	rest   int // bytes, with FitSteps
	misses int
}

// maxMisses is the number of attempts that may be too large for the rest of the budget, before the
// budget counts as used: to learn its size, an attempt has to be read and packed.
const maxMisses = 10

// wants reports whether the attempt may be held.
func (b *stepBudget) wants(a fileAttempt) bool {
	switch b.choice {
	case NoSteps:
		return false
	case FlipSteps:
		return a.flips
	case FailedSteps:
		return a.class != chart.Resolved
	case AllSteps:
		return true
	}
	return b.misses < maxMisses
}

// take reports whether the bytes of an attempt fit, and counts them.
func (b *stepBudget) take(n int) bool {
	if b.choice != FitSteps {
		return true
	}
	if n > b.rest {
		b.misses++
		return false
	}
	b.rest -= n
	return true
}
