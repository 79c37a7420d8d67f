package skills_test

import (
	"slices"
	"testing"

	"github.com/minibench/mini/agent/tools/skills"
)

// TestShipped checks that mini's skills are valid and cause no warnings.
func TestShipped(t *testing.T) {
	set := skills.Load(skills.ShippedSource())
	for _, p := range set.Problems {
		t.Error(p)
	}
	var names []string
	for _, s := range set.Skills {
		names = append(names, s.Name)
		if s.Version == "" || s.AllowedTools == nil || len(s.Text) > 8<<10 {
			t.Errorf("%s: version %q, tools %v, %d bytes", s.Name, s.Version, s.AllowedTools, len(s.Text))
		}
	}
	want := []string{"bisecting-regressions", "large-repositories", "planning-with-files"}
	if !slices.Equal(names, want) {
		t.Errorf("they are %v", names)
	}
}
