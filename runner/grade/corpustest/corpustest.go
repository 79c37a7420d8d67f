// Package corpustest finds, for tests, the conformance corpus: logs, rows and
// scripts with what the official SWE-bench harness made of them, and the real
// data beside it. It is no part of the project; tests that read it are skipped
// where it is missing, or fail where MINI_REQUIRE_CORPUS=1 is set.
//
// The corpus is the folder that the environment variable MINI_CORPUS names,
// or ../shared/data/corpus beside the module. Its layout:
//
//	parsers/<parser>/<case>.log, .json   a log, and the map it gives
//	grading/*.json                       a log or a map, and the verdict
//	evalscripts/<instance>.*             a row, and the script that runs
//	evalscripts/_*.json                  patches, and the files that they name
//
// Every file is a case, whatever its name.
package corpustest

import (
	"os"
	"path/filepath"
	"testing"
)

// Variable is the environment variable that names another corpus.
const Variable = "MINI_CORPUS"

// Required is the environment variable that, set to 1, makes tests fail where
// they would be skipped for want of the corpus or of real data.
const Required = "MINI_REQUIRE_CORPUS"

// Lacks ends a test for want of data: it is skipped, or fails where Required is
// set.
func Lacks(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(Required) == "1" {
		t.Fatalf(format+" ("+Required+"=1)", args...)
	} else {
		t.Skipf(format, args...)
	}
}

// Dir is the folder of the corpus. A corpus that Variable names has to be
// there: the test fails without it. Where none is named, and none is beside the
// module, the test ends by Lacks.
func Dir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(Variable); dir != "" {
		if !isFolder(dir) {
			t.Fatalf("%s=%s is not a folder", Variable, dir)
		}
		return dir
	}
	dir := filepath.Join(moduleRoot(t), "..", "shared", "data", "corpus")
	if !isFolder(dir) {
		Lacks(t, "no conformance corpus: %s is not set, and %s is not there", Variable, dir)
	}
	return dir
}

// Part is a folder of the corpus, such as "parsers" or "parsers/parse_log_jq".
// A corpus may lack it: then the test ends by Lacks.
func Part(t testing.TB, name string) string {
	t.Helper()
	root := Dir(t)
	dir := filepath.Join(root, filepath.FromSlash(name))
	if !isFolder(dir) {
		Lacks(t, "the corpus %s has no part %s", root, name)
	}
	return dir
}

// Files are the files below a folder that match patterns, as filepath.Glob has
// them. The test ends by Lacks where a pattern matches none.
func Files(t testing.TB, dir string, patterns ...string) (paths []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			Lacks(t, "nothing in %s matches %s", dir, pattern)
		}
		paths = append(paths, found...)
	}
	return paths
}

// Beside is a file or folder of the real data that the corpus comes with, such
// as "eval-logs"; where it is missing the test ends by Lacks. Variable does not
// move it.
func Beside(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(moduleRoot(t), "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		Lacks(t, "real data is not at hand: %v", err)
	}
	return path
}

func isFolder(path string) bool {
	info, err := os.Stat(path) //nolint:gosec // the user of the tests names it
	return err == nil && info.IsDir()
}

// moduleRoot is the folder above the test's own that has go.mod: go test runs a
// test in the folder of its package.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above this test")
		}
		dir = up
	}
}
