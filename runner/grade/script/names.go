package script

import (
	"slices"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// gitHeader finds the new name of a file. It is not bound to the beginning of
// a line, and the last " b/" wins: header-like text inside a patch counts, as it
// does for the official harness.
var gitHeader = lazyregexp.New(`diff --git a/.* b/(.*)`)

// newNames are the files that a Python test patch names, in order, repeated
// where it repeats them.
func newNames(patch string) []string {
	var names []string
	for _, m := range gitHeader.FindAllStringSubmatch(patch, -1) {
		names = append(names, m[1])
	}
	return names
}

// notTests are endings of files that are no tests; "csv" has no dot.
var notTests = []string{
	".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml",
}

// Directives are what the test command of a Python repository is given: the
// files of the test patch, in its order, for django as the names of modules.
func Directives(repo, testPatch string) []string {
	if repo == "swe-bench/humaneval" {
		return []string{"test.py"}
	}
	names := slices.DeleteFunc(newNames(testPatch), func(name string) bool {
		return slices.ContainsFunc(notTests, func(end string) bool { return strings.HasSuffix(name, end) })
	})
	if repo == "django/django" {
		for i, name := range names {
			name = strings.TrimPrefix(strings.TrimSuffix(name, ".py"), "tests/")
			names[i] = strings.ReplaceAll(name, "/", ".")
		}
	}
	return names
}
