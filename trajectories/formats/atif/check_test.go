package atif_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// sharedFile reads a real trajectory, which is not part of the repository.
func sharedFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(corpustest.RealData(t, "trajectories/atif/"+name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sharedFiles returns the names of real trajectories that match.
func sharedFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	dir := corpustest.RealData(t, "trajectories/atif")
	paths := corpustest.Glob(t, dir, patterns...)
	for i, path := range paths {
		paths[i] = filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))
	}
	return paths
}

// TestVerdicts compares Check with the results of the reference implementation, for
// both versions.
func TestVerdicts(t *testing.T) {
	var cases []struct {
		File string `json:"file"`
		V7   bool   `json:"valid_v1_7_models"`
		V8   bool   `json:"valid_v1_8_models"`
	}
	if err := json.Unmarshal(sharedFile(t, "cases/manifest.json"), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 48 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.File, func(t *testing.T) {
			data := sharedFile(t, "cases/"+c.File)
			for edition, valid := range map[atif.SpecVersion]bool{atif.Spec17: c.V7, atif.Spec18: c.V8} {
				problems := atif.Check(data, edition)
				t.Logf("edition %d: %v", edition, problems)
				if (len(problems) == 0) != valid {
					t.Errorf("edition %d: valid is %t, want %t", edition, !valid, valid)
				}
			}
		})
	}
}

// TestRealFilesAreValid checks trajectories of other agents.
func TestRealFilesAreValid(t *testing.T) {
	for _, path := range sharedFiles(t, "golden/*/*trajectory*.json", "mini-swe-agent/*.atif.json") {
		for _, p := range atif.Check(sharedFile(t, path), atif.Spec17) {
			t.Errorf("%s: %s", path, p)
		}
	}
}

// TestDeepNesting checks that embedded trajectories are bounded.
func TestDeepNesting(t *testing.T) {
	const open, end = `{"trajectory_id":"t","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":""}],"subagent_trajectories":[`, `]}`
	for depth, fine := range map[int]bool{20: true, 40: false, 3000: false} {
		problems := atif.Check([]byte(strings.Repeat(open, depth)+strings.Repeat(end, depth)), atif.LatestSpec)
		if (len(problems) == 0) != fine {
			t.Errorf("%d deep: %.300v", depth, problems)
		}
	}
	if problems := atif.Check([]byte(strings.Repeat("[", 1<<20)), atif.LatestSpec); len(problems) != 1 {
		t.Errorf("%v", problems)
	}
	if problems := atif.Check(make([]byte, atif.MaxSize+1), atif.LatestSpec); len(problems) != 1 || problems[0].Reason != "134217729 bytes, more than 134217728" {
		t.Errorf("%v", problems)
	}
}
