package export

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/minibench/mini/model"
)

// SelectRule selects attempts on an instance. Retries of a repetition replace each
// other, as in a run: the newest one that counts is used, or else the newest. Rules
// other than SelectEvery select among those.
type SelectRule string

// The rules.
const (
	SelectAll      SelectRule = "all"      // every repetition
	SelectFirst    SelectRule = "first"    // the first repetition, independent of verdicts
	SelectEvery    SelectRule = "every"    // every attempt, including retries
	SelectResolved SelectRule = "resolved" // the first resolved repetition, if any
	SelectShortest SelectRule = "shortest" // the fewest steps among resolved ones, or else among all
	SelectCheapest SelectRule = "cheapest" // the lowest cost among resolved ones, or else among all
	SelectRandom   SelectRule = "random"   // one at random, by the seed
)

// SelectRules returns all rules.
func SelectRules() []SelectRule {
	return []SelectRule{SelectAll, SelectFirst, SelectEvery, SelectResolved, SelectShortest, SelectCheapest, SelectRandom}
}

// NeedsVerdicts reports whether the rule depends on verdicts.
func (r SelectRule) NeedsVerdicts() bool {
	return r == SelectResolved || r == SelectShortest || r == SelectCheapest
}

// AttemptInfo is the data about an attempt that rules use.
type AttemptInfo struct {
	Number, Repetition int
	Counts             bool // it is a result
	Resolved           bool
	Steps              int
	Cost               model.Cost
}

// Select returns the indexes of the selected attempts in ascending order.
// SelectRandom uses the instance ID and the seed.
func (r SelectRule) Select(attempts []AttemptInfo, id string, seed uint64) []int {
	if r == SelectEvery {
		indexes := make([]int, len(attempts))
		for i := range indexes {
			indexes[i] = i
		}
		return indexes
	}
	newest := newestByRepetition(attempts)
	if len(newest) == 0 || r == SelectAll {
		return newest
	}
	best := func(from []int, less func(a, b AttemptInfo) int) []int {
		return []int{slices.MinFunc(from, func(a, b int) int { return less(attempts[a], attempts[b]) })}
	}
	resolved := slices.DeleteFunc(slices.Clone(newest), func(i int) bool { return !attempts[i].Resolved })
	candidates := resolved
	if len(candidates) == 0 {
		candidates = newest
	}
	switch r {
	case SelectResolved:
		return resolved[:min(len(resolved), 1)]
	case SelectShortest:
		return best(candidates, func(a, b AttemptInfo) int { return cmp.Compare(a.Steps, b.Steps) })
	case SelectCheapest:
		return best(candidates, func(a, b AttemptInfo) int { return cmp.Compare(a.Cost, b.Cost) })
	case SelectRandom:
		h := fnv.New64a()
		_, _ = h.Write([]byte(strconv.FormatUint(seed, 10) + "\x00" + id)) // never fails
		return []int{newest[h.Sum64()%uint64(len(newest))]}
	}
	return newest[:1]
}

// newestByRepetition returns the index of the attempt to use for each repetition.
func newestByRepetition(attempts []AttemptInfo) []int {
	byNumber := map[int]int{}
	var numbers []int
	for i, t := range attempts {
		n := max(t.Repetition, 1)
		old, ok := byNumber[n]
		if !ok {
			numbers = append(numbers, n)
		}
		if !ok || t.Counts || !attempts[old].Counts {
			byNumber[n] = i
		}
	}
	slices.Sort(numbers)
	var newest []int
	for _, n := range numbers {
		newest = append(newest, byNumber[n])
	}
	return newest
}
