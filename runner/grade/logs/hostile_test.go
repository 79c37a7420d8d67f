package logs_test

import (
	"strings"
	"testing"
	"time"

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
var hostile = []struct{ before, part, after string }{
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
	{strings.Repeat("n", 1<<20) + " ... x\n", "ok\n", ""},
	{strings.Repeat("n", 1<<20) + " ... x\n", "FAIL: a\nok\n", ""},
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
	{strings.Repeat("S", 1<<20) + " (x)\n", " ✔ a\n", ""},
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
	{"<" + strings.Repeat("a", 1<<10), "<b></b>", ">"},
	{strings.Repeat("<x>", 1<<10), "<b></<a></a>b>", ""},
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
	{"<doctest>", "<TestCase><SubCase/>", strings.Repeat("</TestCase>", 1<<16) + "</doctest>"},
	{"_", "_ .py: ", "_"},
	{"test_", " ", "ok"},
	{"", "\x1b[", "m"},
	{"", "\x1b[31m", ""},
	{"", "\u2003", "PASSED"},
	{"", "\n", ""},
}

// TestHostileLogs parses hostile texts. A parser with quadratic time would take hours.
func TestHostileLogs(t *testing.T) {
	const size = 1 << 17
	const limit = 10 * time.Second // of processor time; a tenth of a second is needed
	for _, h := range hostile {
		text := h.before + strings.Repeat(h.part, size/len(h.part)) + h.after
		for _, name := range logs.Names() {
			begin := cpuTime(t)
			tests, err := logs.Parse(name, text, subjects[0])
			if d := cpuTime(t) - begin; d > limit {
				t.Errorf("%s takes %v for %.20q and many %q", name, d, h.before, h.part)
			} else if d > time.Second {
				t.Logf("%s takes %v for %.20q and many %q", name, d, h.before, h.part)
			}
			if err == nil && tests == nil {
				t.Errorf("%s gives neither tests nor an error", name)
			}
		}
		for _, of := range subjects[1:] {
			for _, name := range []string{"parse_log_jekyll", "parse_log_immutable_js", "parse_log_next", "parse_log_lighthouse"} {
				begin := cpuTime(t)
				_, _ = logs.Parse(name, text, of) // an error is fine too
				if d := cpuTime(t) - begin; d > limit {
					t.Errorf("%s takes %v for %.20q and many %q", name, d, h.before, h.part)
				}
			}
		}
	}
}

// TestNamesAreBounded parses a log with a long heading above many tests, whose names would need
// a terabyte.
func TestNamesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(strings.Repeat("S", 1<<20) + " (x)\n")
	for i := range 1 << 13 {
		b.WriteString(" ✔ " + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + "\n")
	}
	if _, err := logs.Parse("parse_log_phpunit", b.String(), logs.InstanceInfo{}); err == nil {
		t.Error("a log makes any length of names")
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
