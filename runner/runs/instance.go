package runs

import (
	"fmt"
	"slices"
)

// Instance is one instance of a run.
type Instance struct {
	ID string
	// Result is the result of the selected attempt of the first repetition; nil
	// until an attempt of that repetition has ended.
	Result *Result
	// Repetitions are the results of all repetitions with an ended attempt, in
	// order, including the first.
	Repetitions []Result
	// Attempts are in order; empty if only results.json is present.
	Attempts []Attempt
}

// newInstance returns an instance with the results in results.json.
func newInstance(dir string, l Listed, written Result) Instance {
	in := Instance{ID: l.ID}
	for _, n := range l.Attempts {
		in.Attempts = append(in.Attempts, Attempt{Number: n, Journal: Layout{Dir: dir}.Journal(l.ID, n), Repetition: 1})
	}
	in.setResults(written)
	return in
}

// setResults sets the results of an instance and of the attempts that count, without
// patches to save memory. It drops invalid repetitions, because results.json is not trusted.
func (in *Instance) setResults(res Result) {
	in.Result = nil
	in.Repetitions = slices.DeleteFunc(res.Repetitions, func(r Result) bool { return r.Repetition < 1 || r.Repetition > MaxRepetitions })
	res.Repetitions = nil
	for i := range in.Repetitions {
		in.Repetitions[i].PartialPatch = nil
	}
	if res.Class != "" {
		in.Result = withoutPatch(res)
		if len(in.Repetitions) == 0 {
			first := *in.Result
			first.Repetition = 1
			in.Repetitions = []Result{first}
		}
	}
	for i := range in.Repetitions {
		r := &in.Repetitions[i]
		if a := in.Attempt(r.Attempt); a != nil {
			a.Result, a.Repetition = r, r.Repetition
		}
	}
}

// load reads the attempts, and selects among them as a Batch does. The verdicts are
// those in results.json.
func (in *Instance) load() (errs []error) {
	if len(in.Attempts) == 0 {
		return nil
	}
	selection, written := Selection{}, map[int]Result{}
	for i := range in.Attempts {
		a := &in.Attempts[i]
		if a.Result != nil {
			written[a.Number] = *a.Result
		}
		e, err := a.load()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("attempt %d of %s: %w", a.Number, in.ID, err))
		case a.Result != nil:
			selection.Add(a.Repetition, e)
		}
	}
	if in.Result != nil {
		written[in.Result.Attempt] = *in.Result
	}
	res := Result{}
	if len(selection) > 0 {
		res = selection.Result(in.Attempts[len(in.Attempts)-1].Number)
	}
	res.CopyVerdict(written[res.Attempt])
	for i := range res.Repetitions {
		res.Repetitions[i].CopyVerdict(written[res.Repetitions[i].Attempt])
	}
	in.setResults(res)
	return errs
}

// Attempt returns the attempt with a number, or nil.
func (in Instance) Attempt(number int) *Attempt {
	i := slices.IndexFunc(in.Attempts, func(a Attempt) bool { return a.Number == number })
	if i < 0 {
		return nil
	}
	return &in.Attempts[i]
}

// Repetition returns the result of a repetition, or nil.
func (in Instance) Repetition(rep int) *Result {
	i := slices.IndexFunc(in.Repetitions, func(r Result) bool { return r.Repetition == rep })
	if i < 0 {
		return nil
	}
	return &in.Repetitions[i]
}

// Selects reports whether an attempt counts for its repetition.
func (in Instance) Selects(number int) bool {
	return slices.ContainsFunc(in.Repetitions, func(r Result) bool { return r.Attempt == number })
}

// AllAttempts returns the attempts, and after them those of which only results.json is
// left.
func (in Instance) AllAttempts() []Attempt {
	all := slices.Clone(in.Attempts)
	for i := range in.Repetitions {
		if r := &in.Repetitions[i]; in.Attempt(r.Attempt) == nil {
			all = append(all, Attempt{Number: r.Attempt, Repetition: r.Repetition, Result: r})
		}
	}
	return all
}

// MissingResults returns how many of the given number of repetitions have no result.
func (in Instance) MissingResults(repetitions int) int {
	n := 0
	for rep := 1; rep <= repetitions; rep++ {
		if r := in.Repetition(rep); r == nil || !r.Class.IsResult() {
			n++
		}
	}
	return n
}
