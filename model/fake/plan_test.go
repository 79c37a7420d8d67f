package fake_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model/fake"
)

// TestPlanNamesWhatIsWrong is for who writes a plan by hand.
func TestPlanNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"rules: [{fault: cuts}]":                              `rule 1: there is no fault "cuts"; did you mean cut?`,
		"rules: [{fault: cut}, {requests: [1]}]":              "rule 2: no fault is named",
		"rules: [{fault: cut, requests: [0]}]":                "count from 1",
		"rules: [{fault: cut, step: -1}]":                     "count from 1",
		"rules: [{fault: cut, api: azure}]":                   "want openai or anthropic",
		"rules: [{fault: cut, probability: 5}]":               `"5" is no probability`,
		"rules: [{fault: cut, probability: x%}]":              `"x%" is no probability`,
		"rules: [{fault: cut, wait: -3s}]":                    `"-3s" is no time`,
		"rules: [{fault: cut, wait: soon}]":                   `"soon" is no time`,
		"rules: [{fault: huge, size: -1}]":                    `"-1" is no size`,
		"rules: [{fault: status}]":                            "needs a status from 200 to 599, not 0",
		"rules: [{fault: rate-limit, retry_after_as: hours}]": "want seconds, date or ms",
		"rules:\n- fault: cut\n  when: 3":                     `plan.yaml:3: unknown key "when"`,
		"rules: 3":                                            "plan.yaml: line 1: cannot unmarshal",
		"a: b: c":                                             "plan.yaml: yaml: mapping values",
		"seed: 1\n---\nseed: 2":                               "one YAML document",
	} {
		if _, err := fake.ParsePlan("plan.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if p, err := fake.ParsePlan("plan.yaml", nil); err != nil || len(p.Rules) > 0 {
		t.Errorf("an empty file: %v", err)
	}
}

// The example of the documentation is a plan.
func TestPlanOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "fake-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, yaml, _ := strings.Cut(string(page), "    seed: 7\n")
	yaml, _, _ = strings.Cut(yaml, "\n\n")
	if p := plan(t, "    seed: 7\n"+yaml); len(p.Rules) != 4 || p.Rules[3].Times != 3 {
		t.Errorf("%+v", p)
	}
}

// Chance depends on the seed and on what is asked, not on the order.
func TestSameFaultsInAnyOrder(t *testing.T) {
	faults := func(seed int, backwards bool) string {
		s := server(t, fake.Config{
			Script: script(t, "["+strings.Repeat("x, ", 20)+"]"),
			Plan:   plan(t, fmt.Sprintf("{seed: %d, rules: [{probability: 20%%, faults: [server-error, rate-limit]}]}", seed)),
		})
		for i := range 200 {
			if backwards {
				i = 199 - i
			}
			ask(t, s, "openai", simple("openai", fmt.Sprint("instance ", i/20), i%20))
		}
		var list []string
		for _, r := range s.Books().Requests {
			if r.Fault != "" {
				list = append(list, fmt.Sprint(r.Instance, " ", r.Step, " ", r.Fault))
			}
		}
		if backwards {
			for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
				list[i], list[j] = list[j], list[i]
			}
		}
		if len(list) < 20 || len(list) > 60 {
			t.Errorf("%d of 200 are not 20 %%", len(list))
		}
		return strings.Join(list, "\n")
	}
	if diff := cmp.Diff(faults(1, false), faults(1, true)); diff != "" {
		t.Error(diff)
	}
	if faults(1, false) == faults(2, false) {
		t.Error("another seed makes no difference")
	}
}

// A rule for a step is for the first time it is asked, unless it says more.
func TestTimes(t *testing.T) {
	s := server(t, fake.Config{Plan: plan(t, `
rules:
  - {instance: django__django-1, fault: server-error, times: 2}
  - {step: 1, fault: overloaded}
  - {step: 2, api: anthropic, stream: false, fault: status, status: 418}
`)})
	got := ""
	for _, r := range []string{"django__django-1", "x", "y"} {
		for range 4 {
			status, _ := ask(t, s, "openai", simple("openai", r, 0))
			got += fmt.Sprint(status, " ")
		}
	}
	for _, api := range []string{"anthropic", "anthropic", "openai"} {
		status, _ := ask(t, s, api, simple(api, "z", 1))
		got += fmt.Sprint(status, " ")
	}
	if want := "500 500 503 200 503 200 200 200 503 200 200 200 418 200 200 "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
