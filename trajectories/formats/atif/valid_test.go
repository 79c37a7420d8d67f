package atif_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/minibench/mini/internal/corpustest"
)

var schema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	data, err := os.ReadFile("testdata/schema/atif-1.7.json")
	if err != nil {
		return nil, err
	}
	s := &jsonschema.Schema{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
})

// validTrajectory has what the rules that a schema cannot express are about.
type validTrajectory struct {
	ID    string `json:"trajectory_id"`
	Steps []struct {
		ID    int    `json:"step_id"`
		Time  string `json:"timestamp"`
		Calls []struct {
			ID string `json:"tool_call_id"`
		} `json:"tool_calls"`
		Observation struct {
			Results []struct {
				CallID *string `json:"source_call_id"`
				Refs   []struct {
					ID string `json:"trajectory_id"`
				} `json:"subagent_trajectory_ref"`
			} `json:"results"`
		} `json:"observation"`
	} `json:"steps"`
	Subagents []validTrajectory `json:"subagent_trajectories"`
}

// validate checks a document by the rules of ATIF 1.7.
func validate(t *testing.T, data []byte) error {
	t.Helper()
	resolved, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	var document any
	var trajectory validTrajectory
	if err := json.Unmarshal(data, &document); err != nil {
		return err
	}
	if err := resolved.Validate(document); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &trajectory); err != nil {
		return err
	}
	return trajectory.validate()
}

func (v validTrajectory) validate() error {
	embedded := map[string]bool{}
	for _, sub := range v.Subagents {
		if embedded[sub.ID] {
			return fmt.Errorf("two embedded trajectories %q", sub.ID)
		}
		embedded[sub.ID] = true
		if err := sub.validate(); err != nil {
			return err
		}
	}
	for i, s := range v.Steps {
		if s.ID != i+1 {
			return fmt.Errorf("step %d has the ID %d", i+1, s.ID)
		}
		if s.Time != "" && !strings.HasPrefix(s.Time, "20") {
			return fmt.Errorf("step %d: timestamp %q", s.ID, s.Time)
		}
		calls := map[string]bool{}
		for _, c := range s.Calls {
			calls[c.ID] = true
		}
		for _, r := range s.Observation.Results {
			if r.CallID != nil && !calls[*r.CallID] {
				return fmt.Errorf("step %d has no call %q", s.ID, *r.CallID)
			}
		}
	}
	return nil
}

// TestValidate compares validate with the reference implementation.
func TestValidate(t *testing.T) {
	var cases []struct {
		File  string `json:"file"`
		Valid bool   `json:"valid_v1_7_models"`
	}
	if err := json.Unmarshal(realFile(t, "cases/manifest.json"), &cases); err != nil || len(cases) < 48 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		if err := validate(t, realFile(t, "cases/"+c.File)); (err == nil) != c.Valid {
			t.Errorf("%s: %v", c.File, err)
		}
	}
	for _, path := range realFiles(t, "golden/*/*trajectory*.json", "mini-swe-agent/*.atif.json") {
		if err := validate(t, realFile(t, path)); err != nil {
			t.Errorf("%s: %s", path, err)
		}
	}
}

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
