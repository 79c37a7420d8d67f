package export

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/minibench/mini/model"
)

// Rule picks among the attempts on an instance. Tries of one sample replace
// each other, as in a run: of each sample the newest that counts stands, and
// where none does the newest. All rules but Every pick among those.
type Rule string

// The rules.
const (
	All      Rule = "all"      // every sample
	First    Rule = "first"    // the first sample: no verdict has a say in it
	Every    Rule = "every"    // every try too
	Resolved Rule = "resolved" // the first sample that is resolved, if one is
	Shortest Rule = "shortest" // the fewest steps, of the resolved ones where there are any
	Cheapest Rule = "cheapest" // likewise, the lowest cost
	Random   Rule = "random"   // any one, by the seed
)

// Rules are all rules.
func Rules() []Rule { return []Rule{All, First, Every, Resolved, Shortest, Cheapest, Random} }

// Judges says whether a rule has to know verdicts.
func (r Rule) Judges() bool { return r == Resolved || r == Shortest || r == Cheapest }

// Try is what rules know of an attempt.
type Try struct {
	Number, Sample int
	Counts         bool // it is a result
	Resolved       bool
	Steps          int
	Cost           model.Cost
}

// Pick returns the places of the attempts that a rule picks, ascending. The id
// of the instance and the seed are for Random.
func (r Rule) Pick(tries []Try, id string, seed uint64) []int {
	if r == Every {
		all := make([]int, len(tries))
		for i := range all {
			all[i] = i
		}
		return all
	}
	standing := samples(tries)
	if len(standing) == 0 || r == All {
		return standing
	}
	best := func(of []int, less func(a, b Try) int) []int {
		return []int{slices.MinFunc(of, func(a, b int) int { return less(tries[a], tries[b]) })}
	}
	resolved := slices.DeleteFunc(slices.Clone(standing), func(i int) bool { return !tries[i].Resolved })
	among := resolved
	if len(among) == 0 {
		among = standing
	}
	switch r {
	case Resolved:
		return resolved[:min(len(resolved), 1)]
	case Shortest:
		return best(among, func(a, b Try) int { return cmp.Compare(a.Steps, b.Steps) })
	case Cheapest:
		return best(among, func(a, b Try) int { return cmp.Compare(a.Cost, b.Cost) })
	case Random:
		h := fnv.New64a()
		_, _ = h.Write([]byte(strconv.FormatUint(seed, 10) + "\x00" + id)) // never fails
		return []int{standing[h.Sum64()%uint64(len(standing))]}
	}
	return standing[:1]
}

// samples are the attempts that stand for their samples, by sample.
func samples(tries []Try) []int {
	stands := map[int]int{}
	var numbers []int
	for i, t := range tries {
		n := max(t.Sample, 1)
		old, ok := stands[n]
		if !ok {
			numbers = append(numbers, n)
		}
		if !ok || t.Counts || !tries[old].Counts {
			stands[n] = i
		}
	}
	slices.Sort(numbers)
	var standing []int
	for _, n := range numbers {
		standing = append(standing, stands[n])
	}
	return standing
}
