package saved

import "github.com/minibench/mini/runner/grade"

// Tally counts results.
type Tally struct {
	Logs    int
	Bytes   int64 // of all logs that were read
	Classes map[Class]int
	Partial int            // of the unresolved: mended some, broke nothing
	Silent  int            // of the unresolved: the log has no verdict
	Reasons map[string]int // of grade.Reasons, for Silent and Infrastructure
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
