package script

import (
	"slices"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// gitHeader matches the header of a file in a git patch and captures the new name. As
// in the official harness, the match may start anywhere in a line, and the name follows
// the last " b/".
var gitHeader = lazyregexp.New(`diff --git a/.* b/(.*)`)

// newNames returns the new names of the files in a Python test patch, in order. It does
// not remove duplicates.
func newNames(patch string) []string {
	var names []string
	for _, m := range gitHeader.FindAllStringSubmatch(patch, -1) {
		names = append(names, m[1])
	}
	return names
}

// nonTestSuffixes lists suffixes of files that are not tests. "csv" has no dot, as in
// the official harness.
var nonTestSuffixes = []string{
	".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml",
}

// Directives returns the arguments of the test command of a Python repository:
// the names of the test files in the test patch, in order, or their module
// names for django.
func Directives(repo, testPatch string) []string {
	if repo == "swe-bench/humaneval" {
		return []string{"test.py"}
	}
	names := slices.DeleteFunc(newNames(testPatch), func(name string) bool {
		return slices.ContainsFunc(nonTestSuffixes, func(end string) bool { return strings.HasSuffix(name, end) })
	})
	if repo == "django/django" {
		for i, name := range names {
			name = strings.TrimPrefix(strings.TrimSuffix(name, ".py"), "tests/")
			names[i] = strings.ReplaceAll(name, "/", ".")
		}
	}
	return names
}
