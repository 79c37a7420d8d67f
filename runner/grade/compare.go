package grade

import (
	"slices"
	"strings"

	"github.com/minibench/mini/runner/grade/logs"
)

// Resolution says how far a patch does what its instance asks for.
type Resolution string

// The resolutions, as the official harness writes them.
const (
	Full    Resolution = "RESOLVED_FULL"
	Partial Resolution = "RESOLVED_PARTIAL" // nothing broken, some of it mended
	No      Resolution = "RESOLVED_NO"
)

// Sorted are the tests of one list of a row, told apart by how they ended.
// A test whose status is none that verdicts know is in neither list.
type Sorted struct {
	Success, Failure []string
}

// Rate is the share of successes, and 1 where there are no tests.
func (s Sorted) Rate() float64 {
	all := len(s.Success) + len(s.Failure)
	if all == 0 {
		return 1
	}
	return float64(len(s.Success)) / float64(all)
}

// TestsStatus is what became of the tests of a row.
type TestsStatus struct {
	FailToPass, PassToPass Sorted
}

// Resolution sums it up.
func (t TestsStatus) Resolution() Resolution {
	f2p, p2p := t.FailToPass.Rate(), t.PassToPass.Rate()
	switch {
	case p2p < 1 || f2p == 0:
		return No
	case f2p < 1:
		return Partial
	}
	return Full
}

// Compare holds what a log has against the tests of the row.
func (r Rubric) Compare(tests *logs.Tests) TestsStatus {
	if r.EvalType == FailOnly {
		return TestsStatus{failOnly(tests, r.FailToPass), failOnly(tests, r.PassToPass)}
	}
	keys := &keys{tests: tests}
	// A skipped test proves no mending, and breaks nothing.
	return TestsStatus{keys.sort(r.FailToPass, false), keys.sort(r.PassToPass, true)}
}

// failOnly takes every test for a success that is not seen to fail, under its
// exact name.
func failOnly(tests *logs.Tests, names []string) (s Sorted) {
	for _, name := range names {
		if status, ok := tests.Get(name); ok && status == logs.Failed {
			s.Failure = append(s.Failure, name)
		} else {
			s.Success = append(s.Success, name)
		}
	}
	return s
}

// claims counts what the log itself says of the tests of the row.
func (r Rubric) claims(tests *logs.Tests, sorted TestsStatus) Claims {
	c := Claims{Passed: len(sorted.FailToPass.Success) + len(sorted.PassToPass.Success), AnyFailed: tests.AnyFailed()}
	keys := &keys{tests: tests}
	for _, list := range []Sorted{sorted.FailToPass, sorted.PassToPass} {
		for _, name := range list.Failure {
			if status, ok := keys.status(name); ok && (status == logs.Failed || status == logs.Error) {
				c.Failed++
			}
		}
	}
	return c
}

func passing(s logs.Status) bool { return s == logs.Passed || s == logs.XFail }

// keys finds tests by the names that rows have for them.
type keys struct {
	tests  *logs.Tests
	byName []key // sorted; made when it is first needed
}

type key struct {
	name   string
	order  int // in which the tests were first seen
	status logs.Status
}

func (k *keys) sort(names []string, skippedPasses bool) (s Sorted) {
	for _, name := range names {
		status, ok := k.status(name)
		switch {
		case ok && (passing(status) || skippedPasses && status == logs.Skipped):
			s.Success = append(s.Success, name)
		case !ok, status == logs.Failed, status == logs.Error, status == logs.Skipped:
			s.Failure = append(s.Failure, name)
		}
	}
	return s
}

// isCut says that a name of a row may be the beginning of one.
func isCut(name string) bool { return strings.Count(name, "[") > strings.Count(name, "]") }

// wanted says of a test in a log whether Compare may ask for it.
func (r Rubric) wanted() func(test string) bool {
	whole := map[string]bool{}
	cut := map[string][]string{} // by what is before their first bracket, which they all have
	for _, name := range slices.Concat(r.FailToPass, r.PassToPass) {
		if !whole[name] && isCut(name) {
			head, _, _ := strings.Cut(name, "[")
			cut[head] = append(cut[head], name)
		}
		whole[name] = true
	}
	return func(test string) bool {
		if whole[test] {
			return true
		}
		head, _, ok := strings.Cut(test, "[")
		return ok && slices.ContainsFunc(cut[head], func(name string) bool { return strings.HasPrefix(test, name) })
	}
}

// status is what became of a test. Rows have names of parametrized tests that
// were cut at a space, within the brackets: such a name stands for all tests
// that begin with it, as long as these agree.
func (k *keys) status(name string) (logs.Status, bool) {
	if status, ok := k.tests.Get(name); ok {
		return status, true
	}
	if !isCut(name) {
		return "", false
	}
	found := k.beginning(name)
	if len(found) == 0 {
		return "", false
	}
	first := found[0]
	for _, c := range found {
		if passing(c.status) != passing(first.status) {
			return "", false
		}
		if c.order < first.order {
			first = c
		}
	}
	return first.status, true
}

// beginning are the keys with a prefix. A log may have a million, so that they
// are sorted once.
func (k *keys) beginning(prefix string) []key {
	if k.byName == nil {
		for name, status := range k.tests.All() {
			k.byName = append(k.byName, key{name, len(k.byName), status})
		}
		slices.SortFunc(k.byName, func(a, b key) int { return strings.Compare(a.name, b.name) })
	}
	at, _ := slices.BinarySearchFunc(k.byName, prefix, func(c key, p string) int { return strings.Compare(c.name, p) })
	end := at
	for end < len(k.byName) && strings.HasPrefix(k.byName[end].name, prefix) {
		end++
	}
	return k.byName[at:end]
}
