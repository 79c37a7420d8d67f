package fake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model/fake"
)

// Random choices depend on the seed and the request, not on the order.
func TestSameFaultsInAnyOrder(t *testing.T) {
	faults := func(seed uint64, backwards bool) string {
		s := server(t, fake.Config{
			Script: script(t, "["+strings.Repeat("x, ", 20)+"]"),
			Plan:   &fake.Plan{Seed: seed, Rules: []fake.Rule{{Probability: 0.2, Faults: []string{"server-error", "rate-limit"}}}},
		})
		for i := range 200 {
			if backwards {
				i = 199 - i
			}
			ask(t, s, "openai", simple("openai", fmt.Sprint("instance ", i/20), i%20))
		}
		var list []string
		for _, r := range s.Stats().Requests {
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

func TestRuleValidate(t *testing.T) {
	for want, r := range map[string]fake.Rule{
		`unknown fault "cuts"`:            {Faults: []string{"cuts"}},
		"no faults":                       {},
		"start at 1":                      {Faults: []string{"cut"}, Requests: []int{0}},
		"probability must be from 0 to 1": {Faults: []string{"cut"}, Probability: 5},
	} {
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
