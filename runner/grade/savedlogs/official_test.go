package savedlogs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/runner/grade/savedlogs"
)

// official opens all official datasets that are present on this machine.
func official(t testing.TB) (all []datasets.Source) {
	t.Helper()
	dir := corpustest.RealData(t, "swebench")
	for _, name := range []string{"verified", "lite", "multilingual", "multimodal-dev"} {
		src, err := datasets.Local(filepath.Join(dir, name+".jsonl.gz"), "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, src)
	}
	return all
}

// TestOfficialLogs compares verdicts with those of the official harness, which wrote the logs.
func TestOfficialLogs(t *testing.T) {
	dir := corpustest.RealData(t, "eval-logs")
	found := find(t, dir)
	rows, err := savedlogs.ReadRows(t.Context(), official(t), found.IDs())
	if err != nil {
		t.Fatal(err)
	}
	if len(rows.Unknown)+len(rows.Ungradable) > 0 {
		t.Fatalf("unknown %v, not gradable %v", rows.Unknown, rows.Ungradable)
	}
	equal := 0
	for r := range (savedlogs.Grader{}).Grade(t.Context(), found.Folders, rows.TestSpecs) {
		data, err := os.ReadFile(filepath.Join(r.Path, "report.json"))
		if err != nil {
			t.Fatal(err)
		}
		var report map[string]struct {
			Resolved bool `json:"resolved"`
		}
		if err := json.Unmarshal(data, &report); err != nil {
			t.Fatal(err)
		}
		if r.Err == nil && r.Verdict.Report.Resolved == report[r.InstanceID].Resolved {
			equal++
		} else {
			t.Errorf("%s: %s (error %v), the report has %t", r.Path, r.Class(), r.Err, report[r.InstanceID].Resolved)
		}
	}
	t.Logf("%d of %d verdicts equal the report's", equal, len(found.Folders))
	if equal < 103 {
		t.Errorf("%d verdicts equal, want 103", equal)
	}
}

// BenchmarkGrade grades the compressed real logs.
func BenchmarkGrade(b *testing.B) {
	dir := corpustest.RealData(b, "eval-logs")
	found := find(b, dir)
	rows, err := savedlogs.ReadRows(b.Context(), official(b), found.IDs())
	if err != nil {
		b.Fatal(err)
	}
	var bytes int64
	for b.Loop() {
		bytes = 0
		for r := range (savedlogs.Grader{}).Grade(b.Context(), found.Folders, rows.TestSpecs) {
			bytes += r.Bytes
		}
	}
	b.SetBytes(bytes)
}
