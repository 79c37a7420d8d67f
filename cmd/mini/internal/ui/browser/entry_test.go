package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func costOf(c float64) *model.Cost { m := model.Cost(c); return &m }

func testEntries() []*Entry {
	return []*Entry{
		{ID: "django-2", State: Ended, Class: trajectories.Submitted, Status: "Submitted", Verdict: "resolved", Cost: costOf(0.5), Steps: 20, Tokens: 120_000, Duration: 90 * time.Second, Selected: true},
		{ID: "django-10", State: Ended, Class: trajectories.Limit, Status: "LimitsExceeded", Verdict: "unresolved", Cost: costOf(3), Steps: 250, Tokens: 2_000_000, Duration: 20 * time.Minute, Flags: []string{"autosubmitted"}, Selected: true},
		{ID: "sympy-1", State: Running, Cost: costOf(0), Steps: 3, Selected: true},
		{ID: "broken", State: Broken, Problem: "not JSON", Selected: true},
		{ID: "theirs", State: Ended, Class: trajectories.Provider, Status: "AuthenticationError", Flags: []string{"warned"}, Selected: true},
	}
}

func TestSort(t *testing.T) {
	for by, want := range map[string]string{
		"id":      "broken django-2 django-10 sympy-1 theirs",
		"-id":     "theirs sympy-1 django-10 django-2 broken",
		"cost":    "sympy-1 django-2 django-10 broken theirs",
		"-cost":   "django-10 django-2 sympy-1 broken theirs",
		"-steps":  "django-10 django-2 sympy-1 theirs broken",
		"-time":   "django-10 django-2 sympy-1 theirs broken",
		"verdict": "broken sympy-1 theirs django-2 django-10",
	} {
		s, err := ParseSortOrder(by)
		if err != nil {
			t.Fatal(err)
		}
		entries := testEntries()
		s.sort(entries)
		var got []string
		for _, e := range entries {
			got = append(got, e.ID)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("by %s: %s, want %s", by, text, want)
		}
	}
	if _, err := ParseSortOrder("price"); err == nil || !strings.Contains(err.Error(), "use id, status") {
		t.Error(err)
	}
}
