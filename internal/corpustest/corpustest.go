// Package corpustest locates test data: the conformance corpus, which holds
// logs, rows and scripts with the results of the official SWE-bench harness, and
// further real data. The data is not part of the repository. Without the data,
// tests are skipped, or fail if MINI_REQUIRE_CORPUS=1 is set.
//
// The corpus is the folder named by the environment variable MINI_CORPUS, or
// ../shared/data/corpus beside the module. Its layout:
//
//	parsers/<parser>/<case>.log, .json   a log and its test statuses
//	grading/*.json                       a log or test statuses, and the verdict
//	evalscripts/<instance>.*             a row and its evaluation script
//	evalscripts/_*.json                  patches and the files that they name
//
// Every file is a test case.
package corpustest

import (
	"os"
	"path/filepath"
	"testing"
)

// DirVariable is the environment variable with the path of the corpus.
const DirVariable = "MINI_CORPUS"

// RequiredVariable is the environment variable that, set to 1, makes tests fail
// instead of being skipped if data is missing.
const RequiredVariable = "MINI_REQUIRE_CORPUS"

// SkipOrFail ends a test because data is missing: it skips the test, or fails
// it if RequiredVariable is set.
func SkipOrFail(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(RequiredVariable) == "1" {
		t.Fatalf(format+" ("+RequiredVariable+"=1)", args...)
	} else {
		t.Skipf(format, args...)
	}
}

// Dir returns the path of the corpus. The test fails if DirVariable names a
// missing folder. If the variable is not set and the default folder is missing,
// Dir calls SkipOrFail.
func Dir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(DirVariable); dir != "" {
		if !isDir(dir) {
			t.Fatalf("%s=%s is not a folder", DirVariable, dir)
		}
		return dir
	}
	dir := filepath.Join(moduleRoot(t), "..", "shared", "data", "corpus")
	if !isDir(dir) {
		SkipOrFail(t, "no conformance corpus: %s is not set, and %s does not exist", DirVariable, dir)
	}
	return dir
}

// Subdir returns a folder of the corpus, such as "parsers" or
// "parsers/parse_log_jq". If it is missing, Subdir calls SkipOrFail.
func Subdir(t testing.TB, name string) string {
	t.Helper()
	root := Dir(t)
	dir := filepath.Join(root, filepath.FromSlash(name))
	if !isDir(dir) {
		SkipOrFail(t, "the corpus %s has no part %s", root, name)
	}
	return dir
}

// Glob returns the files in a folder that match the patterns of filepath.Glob.
// If a pattern matches none, Glob calls SkipOrFail.
func Glob(t testing.TB, dir string, patterns ...string) (paths []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			SkipOrFail(t, "nothing in %s matches %s", dir, pattern)
		}
		paths = append(paths, found...)
	}
	return paths
}

// RealData returns the path of a file or folder of the data beside the corpus,
// such as "eval-logs". If it is missing, RealData calls SkipOrFail. DirVariable
// does not affect it.
func RealData(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(moduleRoot(t), "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		SkipOrFail(t, "no real data: %v", err)
	}
	return path
}

func isDir(path string) bool {
	info, err := os.Stat(path) //nolint:gosec // the user of the tests chose the path
	return err == nil && info.IsDir()
}

// moduleRoot returns the folder with go.mod above the working directory.
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
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above this test")
		}
		dir = parent
	}
}
