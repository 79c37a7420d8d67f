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
	// Sets holds the counts of each set of predictions, in order of their first
	// log. It is empty if there is only one set.
	Sets []SetTotals
}

// SetTotals counts the logs of one set of predictions.
type SetTotals struct {
	Name             string
	Resolved, Graded int
}

// AddToSet adds a result to a set of predictions.
func (t *Totals) AddToSet(name string, line Line) {
	i := slices.IndexFunc(t.Sets, func(s SetTotals) bool { return s.Name == name })
	if i < 0 {
		i = len(t.Sets)
		t.Sets = append(t.Sets, SetTotals{Name: name})
	}
	if line.Class.HasVerdict() {
		t.Sets[i].Graded++
	}
	if line.Class == Resolved {
		t.Sets[i].Resolved++
	}
}

// GroupByPredictions returns the name of each log's set of predictions, keyed by the
// folder's path. The name is the path of the parent folder. GroupByPredictions returns
// nil if all logs seem to belong to one set: no instance occurs twice, and at most one
// model occurs in the official layout (run_evaluation/RUN/MODEL/INSTANCE).
func GroupByPredictions(folders []Folder) map[string]string {
	sets := map[string]string{}
	repeated := false
	seen, models := map[string]bool{}, map[string]bool{}
	for _, f := range folders {
		sets[f.Path] = filepath.Dir(f.Path)
		repeated = repeated || seen[f.InstanceID]
		seen[f.InstanceID] = true
		model := filepath.Dir(f.realPath)
		if filepath.Base(filepath.Dir(filepath.Dir(model))) == "run_evaluation" {
			models[model] = true
		}
	}
	if !repeated && len(models) < 2 {
		return nil
	}
	return sets
}

// Add counts a result.
func (t *Totals) Add(line Line, bytes int64) {
	if t.Classes == nil {
		t.Classes, t.Reasons = map[Class]int{}, map[string]int{}
	}
	t.Logs++
	t.Bytes += bytes
	t.Classes[line.Class]++
	if line.Class == Unresolved && !line.Applied {
		t.WithoutResults++
	}
	if line.Resolution == grade.ResolvedPartial {
		t.Partial++
	}
	if line.InfraReason != nil {
		t.Reasons[*line.InfraReason]++
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
