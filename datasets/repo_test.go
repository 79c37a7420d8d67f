package datasets_test

import (
	"testing"

	"github.com/minibench/mini/datasets"
)

func TestRepoOf(t *testing.T) {
	for id, want := range map[string]string{
		"django__django-11099":                  "django/django",
		"Chartjs__Chart.js-10301":               "Chartjs/Chart.js",
		"002-cost_2_1__sympy__sympy-21379":      "sympy/sympy",
		"000-cost_2_3__pylint-dev__pylint-7228": "pylint-dev/pylint",
		"verified/pylint-dev__pylint-7228":      "pylint-dev/pylint",
		"pylint-dev__pylint-7228.1":             "",
		"pylint-7228":                           "",
		"getmoto__moto.694ce1f4.pr_7331":        "",
		"demo__":                                "", "__a-1": "", "a__-1": "", "": "",
	} {
		if got := datasets.RepoOf(id); got != want {
			t.Errorf("RepoOf(%q) = %q, want %q", id, got, want)
		}
	}
}
