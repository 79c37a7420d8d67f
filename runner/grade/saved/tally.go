package saved

import (
	"path/filepath"
	"slices"

	"github.com/minibench/mini/runner/grade"
)

// Tally counts results.
type Tally struct {
	Logs    int
	Bytes   int64 // of all logs that were read
	Classes map[Class]int
	Partial int            // of the unresolved: mended some, broke nothing
	Silent  int            // of the unresolved: the log has no verdict
	Reasons map[string]int // of grade.Reasons, for Silent and Infrastructure
	// Shares are the rates of several sets of predictions, in their order; empty
	// where all logs are of one.
	Shares []Share
}

// Share counts the logs of one set of predictions.
type Share struct {
	Name             string
	Resolved, Judged int
}

// AddTo counts one more for a set of predictions.
func (t *Tally) AddTo(name string, l Line) {
	i := slices.IndexFunc(t.Shares, func(s Share) bool { return s.Name == name })
	if i < 0 {
		i = len(t.Shares)
		t.Shares = append(t.Shares, Share{Name: name})
	}
	if l.Class.Judged() {
		t.Shares[i].Judged++
	}
	if l.Class == Resolved {
		t.Shares[i].Resolved++
	}
}

// Sets says of which predictions the log in each folder is, by the folder's
// path: those of one model lie in one folder. It is empty where all are of one,
// as far as can be told: no instance occurs twice, and the official layout
// (run_evaluation/RUN/MODEL/INSTANCE) names no two models.
func Sets(folders []Folder) map[string]string {
	sets := map[string]string{}
	several := false
	seen, models := map[string]bool{}, map[string]bool{}
	for _, f := range folders {
		sets[f.Path] = filepath.Dir(f.Path)
		several = several || seen[f.InstanceID]
		seen[f.InstanceID] = true
		model := filepath.Dir(f.real)
		if filepath.Base(filepath.Dir(filepath.Dir(model))) == "run_evaluation" {
			models[model] = true
		}
	}
	if !several && len(models) < 2 {
		return nil
	}
	return sets
}

// Add counts one more.
func (t *Tally) Add(l Line, bytes int64) {
	if t.Classes == nil {
		t.Classes, t.Reasons = map[Class]int{}, map[string]int{}
	}
	t.Logs++
	t.Bytes += bytes
	t.Classes[l.Class]++
	if l.Class == Unresolved && !l.Applied {
		t.Silent++
	}
	if l.Resolution == grade.Partial {
		t.Partial++
	}
	if l.InfraReason != nil {
		t.Reasons[*l.InfraReason]++
	}
}

// Judged is how many have a verdict on the patch.
func (t Tally) Judged() (n int) {
	for class, count := range t.Classes {
		if class.Judged() {
			n += count
		}
	}
	return n
}
