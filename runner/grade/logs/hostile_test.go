package logs_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/minibench/mini/runner/grade/logs"
)

// subjects select every branch of the parsers that depend on the instance.
var subjects = []logs.InstanceInfo{
	{InstanceID: "x__x-1", Version: "1.0"},
	{InstanceID: "x__x-9141", Version: "1.27"},
	{InstanceID: "x__x-8761", Version: "9.5"},
	{InstanceID: "x__x-2006", Version: "3.0"},
	{InstanceID: "x__x-2005", Version: ""},
}

// hostile are texts that make a parser with quadratic time slow. Each has a repeated part and
// the text around it.
func hostile(size int) []hostileText {
	return []hostileText{
		{"", "[", ""},
		{"", "]", ""},
		{"FAILED ", "[ ", "]"},
		{"PASSED t", "[/a", "]"},
		{"FAILED", " - ", "x"},
		{"", "[3", "m"},
		{"", "[1m", "PASSED"},
		{"x", " ", "PASSED"},
		{"", " \n", ""},
		{"PASSED ", "x", ""},
		{"", " ... ", " ... ok"},
		{"x ... ", "a", "\nok"},
		{"", "a ... Testing against Django installed in ", ""},
		{"", "a ... Testing against Django installed in x silenced).\nok", ""},
		{"", "a ... Internal Server Error: /", "/\nok"},
		{"", "a ... Internal Server Error: /", ""},
		{"", "a ... System check identified no issues (0 silenced)", "\nok"},
		{strings.Repeat("n", 8*size) + " ... x\n", "ok\n", ""},
		{strings.Repeat("n", 8*size) + " ... x\n", "FAIL: a\nok\n", ""},
		{"", "-Dtest= ", "BUILD SUCCESS"},
		{"", "+ -Dtest=a\n", ""},
		{"", "A > b\n", "PASSED"},
		{"", "[ OK ", "] x (1)"},
		{"", "[ OK ] x (", ")"},
		{"", "(", ")"},
		{"--- PASS: ", " (", ")"},
		{"", ". ", "= ."},
		{"", ". =", ""},
		{"", " .", "F"},
		{"", " ..", ""},
		{"", ": ", "."},
		{"", "a: E", ""},
		{strings.Repeat("S", 8*size) + " (x)\n", " ✔ a\n", ""},
		{"", "✔ a\n", ""},
		{"✓ ", "(5ms) ", ""},
		{"PASS ", " (1.", "ms)"},
		{"Starting browser\n", "  a\n ✔ b\n", ""},
		{"", "FAIL\n", ""},
		{"", "  ✓ a", "\n"},
		{" ./node_modules/.bin/jest ", "\n  a\n    ✓ b", ""},
		{"", " ./node_modules/.bin/jest ", ""},
		{"Chrome 1 (", ") (", ") FAILED\n"},
		{"", "Chrome Headless 1 (Linux x86_64) ", "FAILED\n"},
		{"", "Chrome 1 (Linux x) ", ""},
		{"", "  1) a", ""},
		{"", "\n  1) a", ""},
		{"", "\n  1) a", "\nError:"},
		{"  1)", "Error", ""},
		{"", "case a:\n", "mismatch"},
		{"case ", ": mismatch", "es"},
		{"", "1 passing", ""},
		{"\n", "1", " passing"},
		{"", "running 1 test files\n", ""},
		{"", "1)\n", ""},
		{"", "\n1) é", ":"},
		{"1)", "é", ":"},
		{"", "<a>", ""},
		{"", "</a>", ""},
		{"<a>", "<a></a>", "</a>"},
		{"<a>", "</<b></b>c>", ""},
		{"<" + strings.Repeat("a", size>>7), "<b></b>", ">"},
		{strings.Repeat("<x>", size>>7), "<b></<a></a>b>", ""},
		{"", "{", ""},
		{"./node_modules/.bin/mocha tests/run.js --reporter json", "{", "}"},
		{"./node_modules/.bin/mocha tests/run.js --reporter json{\"passes\":", "[", "]}"},
		{"", `"fullTitle": "`, "\",\n"},
		{"./node_modules/.bin/mocha --reporter json\n", `"fullTitle": "a",` + "\n", ""},
		{" xvfb-run ", "AssertionError:", ""},
		{"", "AssertionError: #", ""},
		{"", " xvfb-run ", ""},
		{"", "Running: ", ")\n\n\n  a\n"},
		{"[smoke] ", "/tmp/a/", "/tmp/a.qmd"},
		{"", "[unit] /tmp/", ""},
		{"<doctest", "<TestCase>", "</doctest>"},
		{"<doctest>", "<TestCase><SubCase/>", strings.Repeat("</TestCase>", size/2) + "</doctest>"},
		{"_", "_ .py: ", "_"},
		{"test_", " ", "ok"},
		{"", "\x1b[", "m"},
		{"", "\x1b[31m", ""},
		{"", "\u2003", "PASSED"},
		{"", "\n", ""},
	}
}

type hostileText struct{ before, part, after string }

func (h hostileText) String() string { return fmt.Sprintf("%.20q and many %q", h.before, h.part) }

func (h hostileText) text(size int) string {
	return h.before + strings.Repeat(h.part, size/len(h.part)) + h.after
}

// TestHostileLogs parses hostile texts. What a parser allocates grows with the text, or has a
// limit.
func TestHostileLogs(t *testing.T) {
	const size = 1 << 11
	allocated := func(text, name string, of logs.InstanceInfo) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tests, err := logs.Parse(name, text, of)
		runtime.ReadMemStats(&after)
		if (tests == nil) == (err == nil) {
			t.Errorf("%s gives %v and %v", name, tests, err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	short, long := hostile(size), hostile(4*size)
	for i, h := range short {
		for _, name := range logs.Names() {
			few, many := allocated(h.text(size), name, subjects[0]), allocated(long[i].text(4*size), name, subjects[0])
			if many > 8*few+1<<20 && many > 100<<20 {
				t.Errorf("%s allocates %d bytes, and %d for four times as much, for %v", name, few, many, h)
			}
		}
		for _, of := range subjects[1:] {
			for _, name := range []string{"parse_log_jekyll", "parse_log_immutable_js", "parse_log_next", "parse_log_lighthouse"} {
				allocated(h.text(size), name, of)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range parserCases {
		f.Add(c.text)
	}
	for _, c := range subjectCases {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range logs.Names() {
			for _, of := range subjects {
				tests, err := logs.Parse(name, text, of)
				if (tests == nil) == (err == nil) {
					t.Fatalf("%s gives %v and %v", name, tests, err)
				}
			}
		}
	})
}
