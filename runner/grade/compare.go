package grade

import (
	"slices"
	"strings"

	"github.com/minibench/mini/runner/grade/logs"
)

// Resolution is the degree to which a patch resolves its instance.
type Resolution string

// The resolutions, as the official harness writes them.
const (
	ResolvedFull    Resolution = "RESOLVED_FULL"
	ResolvedPartial Resolution = "RESOLVED_PARTIAL" // all of PASS_TO_PASS pass, but only some of FAIL_TO_PASS
	ResolvedNo      Resolution = "RESOLVED_NO"
)

// TestResults splits the tests of one list of a row by result. A test with an
// unknown status is in neither list.
type TestResults struct {
	Success, Failure []string
}

// SuccessRate returns the share of successes, or 1 if there are no tests.
func (s TestResults) SuccessRate() float64 {
	total := len(s.Success) + len(s.Failure)
	if total == 0 {
		return 1
	}
	return float64(len(s.Success)) / float64(total)
}

// TestsStatus holds the results of a row's tests.
type TestsStatus struct {
	FailToPass, PassToPass TestResults
}

// Resolution returns the official resolution for these results.
func (t TestsStatus) Resolution() Resolution {
	f2p, p2p := t.FailToPass.SuccessRate(), t.PassToPass.SuccessRate()
	switch {
	case p2p < 1 || f2p == 0:
		return ResolvedNo
	case f2p < 1:
		return ResolvedPartial
	}
	return ResolvedFull
}

// CompareTests returns the results of the row's tests, given the tests of a log.
func (r TestSpec) CompareTests(tests *logs.Tests) TestsStatus {
	if r.EvalType == FailOnly {
		return TestsStatus{failOnly(tests, r.FailToPass), failOnly(tests, r.PassToPass)}
	}
	index := &testIndex{tests: tests}
	// A skipped test is a failure in FAIL_TO_PASS and a success in PASS_TO_PASS.
	return TestsStatus{index.lookUp(r.FailToPass, false), index.lookUp(r.PassToPass, true)}
}

// failOnly counts a test as a success unless the log has a failed test of exactly
// this name.
func failOnly(tests *logs.Tests, names []string) (s TestResults) {
	for _, name := range names {
		if status, ok := tests.Get(name); ok && status == logs.Failed {
			s.Failure = append(s.Failure, name)
		} else {
			s.Success = append(s.Success, name)
		}
	}
	return s
}

// logCounts counts the row's tests. results are their results, which
// CompareTests has found in the log.
func (r TestSpec) logCounts(tests *logs.Tests, results TestsStatus) LogCounts {
	c := LogCounts{Passed: len(results.FailToPass.Success) + len(results.PassToPass.Success), AnyFailed: tests.AnyFailed(), Overwritten: tests.Overwritten()}
	for _, status := range tests.All() {
		if isPass(status) {
			c.Listed++
		}
	}
	index := &testIndex{tests: tests}
	for _, list := range []TestResults{results.FailToPass, results.PassToPass} {
		for _, name := range list.Failure {
			if status, ok := index.status(name); ok && (status == logs.Failed || status == logs.Error) {
				c.Failed++
			}
		}
	}
	return c
}

func isPass(s logs.Status) bool { return s == logs.Passed || s == logs.XFail }

// testIndex finds the tests of a log by the names in a row.
type testIndex struct {
	tests  *logs.Tests
	byName []indexedTest // all tests sorted by name; withPrefix builds it on first use
}

type indexedTest struct {
	name   string
	order  int // position in the log
	status logs.Status
}

func (x *testIndex) lookUp(names []string, skippedPasses bool) (s TestResults) {
	for _, name := range names {
		status, ok := x.status(name)
		switch {
		case ok && (isPass(status) || skippedPasses && status == logs.Skipped):
			s.Success = append(s.Success, name)
		case !ok, status == logs.Failed, status == logs.Error, status == logs.Skipped:
			s.Failure = append(s.Failure, name)
		}
	}
	return s
}

// isTruncated reports whether a name in a row may be only the beginning of a test's
// name (see testIndex.status).
func isTruncated(name string) bool { return strings.Count(name, "[") > strings.Count(name, "]") }

// neededTests returns a function that reports whether CompareTests may look up a
// test.
func (r TestSpec) neededTests() func(test string) bool {
	exact := map[string]bool{}
	truncated := map[string][]string{} // truncated names, by the text before their first bracket
	for _, name := range slices.Concat(r.FailToPass, r.PassToPass) {
		if !exact[name] && isTruncated(name) {
			base, _, _ := strings.Cut(name, "[")
			truncated[base] = append(truncated[base], name)
		}
		exact[name] = true
	}
	return func(test string) bool {
		if exact[test] {
			return true
		}
		base, _, ok := strings.Cut(test, "[")
		return ok && slices.ContainsFunc(truncated[base], func(name string) bool {
			return strings.HasPrefix(test, name)
		})
	}
}

// status returns the status of a test. Some rows have names of parametrized
// tests that were truncated at a space within the brackets. Such a name matches
// all tests that begin with it, provided that all of them pass or none passes.
func (x *testIndex) status(name string) (logs.Status, bool) {
	if status, ok := x.tests.Get(name); ok {
		return status, true
	}
	if !isTruncated(name) {
		return "", false
	}
	matches := x.withPrefix(name)
	if len(matches) == 0 {
		return "", false
	}
	first := matches[0]
	for _, match := range matches {
		if isPass(match.status) != isPass(first.status) {
			return "", false
		}
		if match.order < first.order {
			first = match
		}
	}
	return first.status, true
}

// withPrefix returns the tests whose names have a prefix. A log may have a
// million tests, so they are sorted once.
func (x *testIndex) withPrefix(prefix string) []indexedTest {
	if x.byName == nil {
		for name, status := range x.tests.All() {
			x.byName = append(x.byName, indexedTest{name, len(x.byName), status})
		}
		slices.SortFunc(x.byName, func(a, b indexedTest) int { return strings.Compare(a.name, b.name) })
	}
	start, _ := slices.BinarySearchFunc(x.byName, prefix, func(t indexedTest, p string) int {
		return strings.Compare(t.name, p)
	})
	end := start
	for end < len(x.byName) && strings.HasPrefix(x.byName[end].name, prefix) {
		end++
	}
	return x.byName[start:end]
}
