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

// realFile reads a real trajectory, which is not part of the repository.
func realFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(corpustest.RealData(t, "trajectories/atif/"+name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// realFiles returns the names of real trajectories that match a pattern.
func realFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	dir := corpustest.RealData(t, "trajectories/atif")
	paths := corpustest.Glob(t, dir, patterns...)
	for i, path := range paths {
		paths[i] = filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))
	}
	return paths
}

// TestVerdicts compares Check with the reference implementation, for both versions of the
// specification.
func TestVerdicts(t *testing.T) {
	var cases []struct {
		File    string `json:"file"`
		Valid17 bool   `json:"valid_v1_7_models"`
		Valid18 bool   `json:"valid_v1_8_models"`
	}
	if err := json.Unmarshal(realFile(t, "cases/manifest.json"), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 48 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.File, func(t *testing.T) {
			data := realFile(t, "cases/"+c.File)
			for spec, valid := range map[atif.SpecVersion]bool{atif.Spec17: c.Valid17, atif.Spec18: c.Valid18} {
				problems := atif.Check(data, spec)
				t.Logf("edition %d: %v", spec, problems)
				if (len(problems) == 0) != valid {
					t.Errorf("edition %d: valid is %t, want %t", spec, !valid, valid)
				}
			}
		})
	}
}

// TestRealFilesAreValid checks trajectories of other agents.
func TestRealFilesAreValid(t *testing.T) {
	for _, path := range realFiles(t, "golden/*/*trajectory*.json", "mini-swe-agent/*.atif.json") {
		for _, p := range atif.Check(realFile(t, path), atif.Spec17) {
			t.Errorf("%s: %s", path, p)
		}
	}
}

// TestDeepNesting checks the limits of nesting and size.
func TestDeepNesting(t *testing.T) {
	const open, end = `{"trajectory_id":"t","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":""}],"subagent_trajectories":[`, `]}`
	for depth, wantValid := range map[int]bool{20: true, 40: false, 3000: false} {
		problems := atif.Check([]byte(strings.Repeat(open, depth)+strings.Repeat(end, depth)), atif.LatestSpec)
		if (len(problems) == 0) != wantValid {
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
