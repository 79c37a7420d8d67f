package suspect_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade/corpustest"
	"github.com/minibench/mini/runner/grade/script"
	"github.com/minibench/mini/runner/grade/suspect"
)

// TestRealLogs looks at logs of honest runs: their markers are the script's.
func TestRealLogs(t *testing.T) {
	logs, err := filepath.Glob(filepath.Join(corpustest.Beside(t, "eval-logs"), "*", "*", "test_output.txt.gz"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	rows := officialRows(t)
	looked := 0
	for _, path := range logs {
		in, ok := rows[filepath.Base(filepath.Dir(path))]
		if !ok {
			continue
		}
		looked++
		s, err := script.For(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range suspect.Log(string(unpacked(t, path)), s.Text, suspect.Outcome{}) {
			t.Errorf("%s: %+v", path, f)
		}
	}
	t.Logf("%d of %d logs are of rows at hand", looked, len(logs))
}

// TestGoldPatches shows how often the reference solutions touch what is
// suspicious: they are honest, and few may.
func TestGoldPatches(t *testing.T) {
	counts := map[suspect.Flag]int{}
	flagged, rows := 0, officialRows(t)
	for _, in := range rows {
		found := suspect.Patch([]byte(in.Patch), in)
		if len(found) > 0 {
			flagged++
		}
		for _, f := range found {
			counts[f.Flag]++
		}
		// The test patch is the extreme: nothing of it is left.
		if rest := suspect.Without([]byte(in.TestPatch), suspect.Files(suspect.Patch([]byte(in.TestPatch), in))); len(rest) > 0 {
			t.Errorf("%s: of the test patch is left:\n%s", in.ID, rest)
		}
	}
	t.Logf("%d of %d gold patches have a flag: %v", flagged, len(rows), counts)
	if flagged*20 > len(rows) {
		t.Error("more than one honest patch in twenty is suspicious")
	}
}

func officialRows(t *testing.T) map[string]datasets.Instance {
	t.Helper()
	rows := map[string]datasets.Instance{}
	for _, set := range []string{"verified", "lite", "multilingual", "multimodal-dev"} {
		src, err := datasets.Local(corpustest.Beside(t, "swebench/"+set+".jsonl.gz"), "")
		if err != nil {
			t.Fatal(err)
		}
		for in, err := range datasets.Rows(t.Context(), src, nil) {
			if err != nil {
				t.Fatal(err)
			}
			rows[in.ID] = in
		}
	}
	return rows
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
