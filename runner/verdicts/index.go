package verdicts

import (
	"cmp"
	"slices"

	"github.com/minibench/mini/datasets"
)

// The model names of the baselines, the evaluations that check this machine:
// with each row's own solution, and without a patch.
const (
	GoldModel = "gold" // as in the official harness
	NoopModel = "noop"
)

// IsBaseline reports whether the verdict is on a baseline, not on a patch of an
// agent.
func (r Record) IsBaseline() bool { return r.Model == GoldModel || r.Model == NoopModel }

// Index finds verdicts by attempt.
type Index map[indexKey][]*Verdict

// indexKey identifies the attempt that counts for a repetition of an instance.
type indexKey struct {
	instance   string
	repetition int
}

// Index returns an index of the verdicts, without those on baselines. It refers to
// the verdicts of the set.
func (s Set) Index() Index {
	index := Index{}
	for i := range s.Verdicts {
		if v := &s.Verdicts[i]; !v.IsBaseline() {
			key := indexKey{v.Instance, max(1, v.Repetition)}
			index[key] = append(index[key], v)
		}
	}
	for _, list := range index {
		slices.SortStableFunc(list, func(a, b *Verdict) int { return b.Written.Compare(a.Written) })
	}
	return index
}

// Find returns the newest verdict with a class, or with any class if it is "", on
// an attempt's patch; nil if there is none. It compares the sizes of the patches,
// which excludes most verdicts on earlier attempts. It does not compare the
// patches themselves, because that would require opening the journals.
func (x Index) Find(instance string, repetition, patchBytes int, class Class) *Verdict {
	list := x[indexKey{instance, max(1, repetition)}]
	i := slices.IndexFunc(list, func(v *Verdict) bool {
		return v.Basis.PatchBytes == patchBytes && cmp.Or(class, v.Class) == v.Class
	})
	if i < 0 {
		return nil
	}
	return list[i]
}

// Newest returns the newest verdict on each attempt, ordered by instance and
// repetition.
func (x Index) Newest() []Verdict {
	var newest []Verdict
	for _, list := range x {
		newest = append(newest, *list[0])
	}
	slices.SortFunc(newest, func(a, b Verdict) int {
		return cmp.Or(datasets.CompareNatural(a.Instance, b.Instance), cmp.Compare(a.Repetition, b.Repetition))
	})
	return newest
}
