package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func money(c float64) *model.Cost { m := model.Cost(c); return &m }

func some() []*Item {
	return []*Item{
		{ID: "django-2", State: Ended, Class: trajectories.Submitted, Status: "Submitted", Verdict: "resolved", Cost: money(0.5), Steps: 20, Tokens: 120_000, Took: 90 * time.Second, Selected: true},
		{ID: "django-10", State: Ended, Class: trajectories.Limit, Status: "LimitsExceeded", Verdict: "unresolved", Cost: money(3), Steps: 250, Tokens: 2_000_000, Took: 20 * time.Minute, Flags: []string{"autosubmitted"}, Selected: true},
		{ID: "sympy-1", State: Running, Cost: money(0), Steps: 3, Selected: true},
		{ID: "broken", State: Broken, Problem: "not JSON", Selected: true},
		{ID: "theirs", State: Ended, Class: trajectories.Provider, Status: "AuthenticationError", Flags: []string{"warned"}, Selected: true},
	}
}

func TestFilter(t *testing.T) {
	for line, want := range map[string]string{
		"":                                 "django-2 django-10 sympy-1 broken theirs",
		"status:limit":                     "django-10",
		"status:LimitsExceeded":            "django-10",
		"status:running":                   "sympy-1",
		"status:unreadable":                "broken",
		"verdict:resolved":                 "django-2",
		"verdict:unres":                    "django-10",
		"verdict:none":                     "sympy-1 broken theirs",
		"cost>1":                           "django-10",
		"cost>=$0.5":                       "django-2 django-10",
		"cost=0":                           "sympy-1",
		"cost<1":                           "django-2 sympy-1", // nobody knows that of theirs, and broken has none
		"steps!=20 status:ended":           "django-10 theirs",
		"tokens>1M":                        "django-10",
		"tokens<=120k cost>0":              "django-2",
		"time>5m":                          "django-10",
		"time<100 time>80":                 "django-2",
		"flags:auto":                       "django-10",
		"flags:none id:django":             "django-2",
		"django":                           "django-2 django-10",
		"DJANGO -id:10":                    "django-2",
		"id=django-2":                      "django-2",
		"-status:ended":                    "sympy-1 broken",
		`id:"django-1"`:                    "django-10",
		"status:limit verdict:unresolved ": "django-10",
		`text:"no such" status:limit`:      "django-10",
	} {
		f, err := ParseFilter(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var got []string
		for _, it := range some() {
			if f.Shows(it) {
				got = append(got, it.ID)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s shows %q, want %q", line, s, want)
		}
	}
	if f, err := ParseFilter(`text:"No such"`); err != nil || f.Text != "No such" {
		t.Errorf("text is %q, %v", f.Text, err)
	}
}

func TestFilterMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"verdikt:resolved": "did you mean verdict?",
		"colour:red":       "id status verdict cost steps tokens time flags run model text",
		"cost>much":        `cost: "much" is no number; as in cost>0.5`,
		"cost>NaN":         "is no number",
		"cost>":            "cost> what? as in cost>0.5",
		"status>limit":     "status has no order",
		`text:"open`:       "is not closed",
		"text:a text:b":    "once only",
		"-text:a":          "is not there",
	} {
		if _, err := ParseFilter(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestComplete(t *testing.T) {
	for line, want := range map[string][]string{
		"ver":                {"verdict:"},
		"cost>1 s":           {"cost>1 status:", "cost>1 steps>"},
		"verdict:":           {"verdict:none", "verdict:resolved", "verdict:unresolved"},
		"-flags:w":           {"-flags:warned"},
		"status:l":           {"status:limit", "status:limitsexceeded"},
		"id:d":               nil,
		"":                   nil,
		"verdict:resolved x": nil,
	} {
		if got := Complete(line, some()); !slices.Equal(got, want) {
			t.Errorf("%q is completed to %q, want %q", line, got, want)
		}
	}
	hostile := []*Item{{State: Ended, Class: "x", Status: "exit\x1b]0;owned\x07"}}
	if got := Complete("status:exit", hostile); len(got) > 0 {
		t.Errorf("a steering word is offered: %q", got)
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
		s, err := ParseSorting(by)
		if err != nil {
			t.Fatal(err)
		}
		items := some()
		s.sort(items)
		var got []string
		for _, it := range items {
			got = append(got, it.ID)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("by %s: %s, want %s", by, text, want)
		}
	}
	if _, err := ParseSorting("price"); err == nil || !strings.Contains(err.Error(), "there is id, status") {
		t.Error(err)
	}
}
