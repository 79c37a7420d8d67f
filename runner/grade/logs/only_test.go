package logs_test

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/runner/grade/logs"
)

// some selects every third test, independently of the order.
func some(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum32()%3 == 0
}

// picked returns the wanted tests as "name: status".
func picked(tests *logs.Tests, wanted func(string) bool) (list []string) {
	for name, status := range tests.All() {
		if wanted(name) {
			list = append(list, fmt.Sprintf("%s: %s", name, status))
		}
	}
	return list
}

// sameOnly compares ParseOnly with Parse, for a parser and a text.
func sameOnly(t *testing.T, parser, text string) {
	t.Helper()
	for of, wanted := range map[string]func(string) bool{
		"some": some,
		"none": func(string) bool { return false },
	} {
		subject := logs.InstanceInfo{InstanceID: "x__x-2006", Version: "3.0"}
		all, errAll := logs.Parse(parser, text, subject)
		only, errOnly := logs.ParseOnly(parser, text, subject, wanted)
		if errAll != nil || errOnly != nil {
			if fmt.Sprint(errAll) != fmt.Sprint(errOnly) {
				t.Errorf("%s, %s: error %v, of all tests %v", parser, of, errOnly, errAll)
			}
			continue
		}
		if diff := cmp.Diff(picked(all, wanted), picked(only, wanted)); diff != "" {
			t.Errorf("%s, %s: tests (-all +only):\n%s", parser, of, diff)
		}
		if all.Any() != only.Any() || all.AnyFailed() != only.AnyFailed() {
			t.Errorf("%s, %s: any %t, failed %t; of all tests %t, %t",
				parser, of, only.Any(), only.AnyFailed(), all.Any(), all.AnyFailed())
		}
	}
}

func TestParseOnly(t *testing.T) {
	for _, file := range corpustest.Glob(t, corpustest.Subdir(t, "parsers"), "*/*.log") {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := logs.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		sameOnly(t, filepath.Base(filepath.Dir(file)), text)
	}
}

// The status of an unwanted test may change from line to line.
func TestParseOnlyChanges(t *testing.T) {
	none := func(string) bool { return false }
	for text, want := range map[string]bool{
		"FAILED a":                      true,
		"FAILED a\nPASSED a":            false,
		"PASSED a\nERROR a":             true,
		"FAILED a\nFAILED b\nPASSED a":  true,
		"FAILED a\nSKIPPED a\nPASSED b": false,
	} {
		tests, err := logs.ParseOnly("parse_log_pytest", text, logs.InstanceInfo{}, none)
		if err != nil || tests.AnyFailed() != want || !tests.Any() || tests.Len() != 0 {
			t.Errorf("%q: failed %t, any %t, %d kept, error %v", text, tests.AnyFailed(), tests.Any(), tests.Len(), err)
		}
	}
	// Django's "ok" on its own line replaces a failure.
	tests, err := logs.ParseOnly("parse_log_django", "a ... FAIL\nok", logs.InstanceInfo{}, none)
	if err != nil || tests.AnyFailed() || !tests.Any() {
		t.Errorf("failed %t, any %t, error %v", tests.AnyFailed(), tests.Any(), err)
	}
}

// A million unwanted tests need little memory.
func TestParseOnlyIsSmall(t *testing.T) {
	var s strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&s, "PASSED t.py::test_%d\n", i)
	}
	text := s.String()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tests, err := logs.ParseOnly("parse_log_pytest", text, logs.InstanceInfo{}, func(name string) bool { return name == "t.py::test_7" })
	runtime.ReadMemStats(&after)
	if err != nil || tests.Len() != 1 {
		t.Fatalf("%d tests, error %v", tests.Len(), err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}
