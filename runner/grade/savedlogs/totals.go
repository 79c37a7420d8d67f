package savedlogs

import (
	"path/filepath"
	"slices"

	"github.com/minibench/mini/runner/grade"
)

// Totals counts results.
type Totals struct {
	Logs           int
	Bytes          int64 // total size of the logs that were read
	Classes        map[Class]int
	Partial        int            // unresolved logs with the resolution RESOLVED_PARTIAL
	WithoutResults int            // unresolved logs without usable results
	Reasons        map[string]int // by failure reason, for WithoutResults and Infrastructure
	// Sets holds the counts of several sets of predictions, in order; empty if
	// there is one set.
	Sets []SetTotals
}

// SetTotals counts the logs of one set of predictions.
type SetTotals struct {
	Name             string
	Resolved, Graded int
}

// AddToSet adds a result to a set of predictions.
func (t *Totals) AddToSet(name string, l Line) {
	i := slices.IndexFunc(t.Sets, func(s SetTotals) bool { return s.Name == name })
	if i < 0 {
		i = len(t.Sets)
		t.Sets = append(t.Sets, SetTotals{Name: name})
	}
	if l.Class.HasVerdict() {
		t.Sets[i].Graded++
	}
	if l.Class == Resolved {
		t.Sets[i].Resolved++
	}
}

// GroupByPredictions returns the set of predictions of each log, keyed by the
// folder's path. A set is named after the parent folder. The result is empty if
// all logs seem to be of one set: no instance occurs twice, and the official
// layout (run_evaluation/RUN/MODEL/INSTANCE) has at most one model.
func GroupByPredictions(folders []Folder) map[string]string {
	sets := map[string]string{}
	several := false
	seen, models := map[string]bool{}, map[string]bool{}
	for _, f := range folders {
		sets[f.Path] = filepath.Dir(f.Path)
		several = several || seen[f.InstanceID]
		seen[f.InstanceID] = true
		model := filepath.Dir(f.realPath)
		if filepath.Base(filepath.Dir(filepath.Dir(model))) == "run_evaluation" {
			models[model] = true
		}
	}
	if !several && len(models) < 2 {
		return nil
	}
	return sets
}

// Add counts a result.
func (t *Totals) Add(l Line, bytes int64) {
	if t.Classes == nil {
		t.Classes, t.Reasons = map[Class]int{}, map[string]int{}
	}
	t.Logs++
	t.Bytes += bytes
	t.Classes[l.Class]++
	if l.Class == Unresolved && !l.Applied {
		t.WithoutResults++
	}
	if l.Resolution == grade.Partial {
		t.Partial++
	}
	if l.InfraReason != nil {
		t.Reasons[*l.InfraReason]++
	}
}

// Graded returns the number of results with a verdict.
func (t Totals) Graded() (n int) {
	for class, count := range t.Classes {
		if class.HasVerdict() {
			n += count
		}
	}
	return n
}
