package atif_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/trajectories/atif"
)

// shared is a folder of real trajectories, which is no part of the repository.
const shared = "../../../shared/data/trajectories/atif"

// sharedFile skips a test where the file is not there.
func sharedFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(shared, name))
	if os.IsNotExist(err) {
		t.Skipf("the real trajectories are not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestVerdicts holds Check against what the reference says of each case, in
// both editions.
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
			for edition, valid := range map[atif.Edition]bool{atif.Edition7: c.V7, atif.Edition8: c.V8} {
				problems := atif.Check(data, edition)
				t.Logf("edition %d: %v", edition, problems)
				if (len(problems) == 0) != valid {
					t.Errorf("edition %d: valid is %t, want %t", edition, !valid, valid)
				}
			}
		})
	}
}

// TestRealFilesAreValid checks what other agents wrote.
func TestRealFilesAreValid(t *testing.T) {
	checked := 0
	for _, pattern := range []string{"golden/*/*trajectory*.json", "mini-swe-agent/*.atif.json"} {
		files, err := filepath.Glob(filepath.Join(shared, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := strings.TrimPrefix(f, shared+"/")
			checked++
			for _, p := range atif.Check(sharedFile(t, name), atif.Edition7) {
				t.Errorf("%s: %s", name, p)
			}
		}
	}
	if checked == 0 {
		t.Skip("the real trajectories are not here")
	}
}
