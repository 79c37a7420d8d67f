package runs

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Attempt is one attempt and its journal.
type Attempt struct {
	Number     int
	Repetition int    // from 1; an attempt and its retries have the same repetition
	Journal    string // path; "" if the journal is missing
	// Model is the model's name; "" if unknown or before Load.
	Model string
	// Result is nil while the attempt is running, and if its process was killed.
	// Before Load, only attempts that count have the result, from results.json.
	Result *Result
	// Progress is the usage so far; set by Load, and only without a Result.
	Progress Totals
}

// Totals is the usage of an attempt. It comes from the outcome or, if there is none,
// from the records.
type Totals struct {
	Steps      int // model calls
	Inherited  int // those of Steps that were copied from the parent of a branch; not in Usage and Cost
	Usage      model.Usage
	Cost       model.Cost
	Start, End time.Time // times of the first and the last record
}

// Totals returns the usage of the attempt.
func (a Attempt) Totals() Totals {
	if r := a.Result; r != nil {
		return Totals{Steps: r.Steps, Usage: r.Usage, Cost: r.KnownCost(), Start: r.Start, End: r.End}
	}
	return a.Progress
}

// HasResult reports whether the attempt has ended with a class that counts as a
// result.
func (a Attempt) HasResult() bool { return a.Result != nil && a.Result.Class.IsResult() }

// Load reads the attempt from the start and the end of its journal, or from the whole
// journal if it has no outcome.
func (a *Attempt) Load() error {
	_, err := a.load()
	return err
}

// load is Load and returns the outcome, with the submission.
func (a *Attempt) load() (Ended, error) {
	h, out, ended, err := ReadEnds(a.Journal)
	a.Model, a.Repetition, a.Result = h.ModelName, RepetitionOf(h), nil
	e := Ended{a.Number, h.ModelName, out}
	switch {
	case err != nil:
	case ended && h.Format == "":
		err = errors.New("ignored: its journal has no header")
	case ended:
		a.Result = withoutPatch(e.result())
	default:
		a.Progress = SumJournal(a.Journal)
	}
	return e, err
}

// Prediction returns the submission of the attempt at an instance, from its journal.
func (a Attempt) Prediction(id string) (trajectories.Prediction, error) {
	h, out, ended, err := ReadEnds(a.Journal)
	p, ok := PredictionOf(id, h.ModelName, out)
	if err != nil || !ended || !ok {
		return p, errors.Join(fmt.Errorf("attempt %d of %s has no outcome", a.Number, id), err)
	}
	return p, nil
}

// SumJournal adds up the usage in the records of a journal, up to the first unreadable
// record, because the attempt may still be writing.
func SumJournal(journal string) Totals {
	if info, err := os.Lstat(journal); err != nil || !info.Mode().IsRegular() {
		return Totals{}
	}
	a, _ := trajectories.ForTotals.Fold(trajectories.Read(journal))
	t, spent := a.Totals, a.Totals.Spent()
	steps := max(spent.Steps, a.Replies()) // an imported list of messages has replies without calls
	return Totals{Steps: steps, Inherited: t.Inherited, Usage: spent.Usage, Cost: spent.Cost, Start: t.Start, End: t.End}
}

// withoutPatch returns a result without its patch.
func withoutPatch(res Result) *Result {
	res.PartialPatch = nil
	return &res
}
