package export

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/minibench/mini/model"
)

// SelectRule is a rule that selects attempts on an instance. SelectEvery selects all
// attempts. The other rules first select one attempt of each repetition, as a run does:
// the newest that is a result, or else the newest.
type SelectRule string

// The selection rules.
const (
	SelectAll      SelectRule = "all"      // every repetition
	SelectFirst    SelectRule = "first"    // the first repetition, independent of verdicts
	SelectEvery    SelectRule = "every"    // every attempt, including retries
	SelectResolved SelectRule = "resolved" // the first resolved repetition, if any
	SelectShortest SelectRule = "shortest" // the repetition with the fewest steps, if possible a resolved one
	SelectCheapest SelectRule = "cheapest" // the repetition with the lowest cost, if possible a resolved one
	SelectRandom   SelectRule = "random"   // a repetition at random
)

// SelectRules returns all rules.
func SelectRules() []SelectRule {
	return []SelectRule{SelectAll, SelectFirst, SelectEvery, SelectResolved, SelectShortest, SelectCheapest, SelectRandom}
}

// NeedsVerdicts reports whether the rule depends on verdicts.
func (r SelectRule) NeedsVerdicts() bool {
	return r == SelectResolved || r == SelectShortest || r == SelectCheapest
}

// AttemptInfo is the data of an attempt that rules depend on.
type AttemptInfo struct {
	Number, Repetition int
	IsResult           bool // the attempt is a result, see trajectories.Class.IsResult
	Resolved           bool
	Steps              int
	Cost               model.Cost
}

// Select returns the indexes of the selected attempts on an instance, in the order of
// their repetitions; SelectEvery keeps the order of attempts. SelectRandom depends only
// on the attempts, the instance ID and the seed.
func (r SelectRule) Select(attempts []AttemptInfo, instanceID string, seed uint64) []int {
	if r == SelectEvery {
		indexes := make([]int, len(attempts))
		for i := range indexes {
			indexes[i] = i
		}
		return indexes
	}
	current := currentAttempts(attempts)
	if len(current) == 0 || r == SelectAll {
		return current
	}
	best := func(from []int, compare func(a, b AttemptInfo) int) []int {
		return []int{slices.MinFunc(from, func(a, b int) int { return compare(attempts[a], attempts[b]) })}
	}
	resolved := slices.DeleteFunc(slices.Clone(current), func(i int) bool { return !attempts[i].Resolved })
	candidates := resolved
	if len(candidates) == 0 {
		candidates = current
	}
	switch r {
	case SelectResolved:
		return resolved[:min(len(resolved), 1)]
	case SelectShortest:
		return best(candidates, func(a, b AttemptInfo) int { return cmp.Compare(a.Steps, b.Steps) })
	case SelectCheapest:
		return best(candidates, func(a, b AttemptInfo) int { return cmp.Compare(a.Cost, b.Cost) })
	case SelectRandom:
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(strconv.FormatUint(seed, 10) + "\x00" + instanceID)) // never fails
		return []int{current[hash.Sum64()%uint64(len(current))]}
	}
	return current[:1]
}

// currentAttempts returns for each repetition the index of the newest attempt that is a
// result, or else of the newest attempt.
func currentAttempts(attempts []AttemptInfo) []int {
	byRepetition := map[int]int{}
	var repetitions []int
	for i, a := range attempts {
		n := max(a.Repetition, 1)
		old, ok := byRepetition[n]
		if !ok {
			repetitions = append(repetitions, n)
		}
		if !ok || a.IsResult || !attempts[old].IsResult {
			byRepetition[n] = i
		}
	}
	slices.Sort(repetitions)
	var current []int
	for _, n := range repetitions {
		current = append(current, byRepetition[n])
	}
	return current
}
