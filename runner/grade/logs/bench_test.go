package logs_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/runner/grade/corpustest"
	"github.com/minibench/mini/runner/grade/logs"
)

// benchLines are what logs of each parser mostly have: a result, a failure, and
// noise.
var benchLines = map[string]string{
	"pytest":         "PASSED lib/tests/test_%d.py::test_x[a-b]\nFAILED lib/tests/test_%d.py::test_y - AssertionError: 1 != 2\nE       assert 1 == 2, and what pytest shows of it\n",
	"pytest_options": "PASSED lib/tests/test_%d.py::test_x[/a/b-c]\nFAILED lib/tests/test_%d.py::test_y - AssertionError: 1 != 2\nE       assert 1 == 2, and what pytest shows of it\n",
	"pytest_v2":      "PASSED lib/tests/test_%d.py::test_x[a-b]\nFAILED lib/tests/test_%d.py::test_y - AssertionError: 1 != 2\n\x1b[31mE       assert 1 == 2, and what pytest shows of it\x1b[0m\n",
	"seaborn":        "lib/test_%d.py::test_x PASSED [ 1%%]\nFAILED lib/test_%d.py::test_y - x\nE    assert 1 == 2, and what pytest shows of it\n",
	"matplotlib":     "PASSED lib/tests/test_%d.py::test_x[a-b]\nFAILED lib/tests/test_%d.py::test_y - AssertionError: 1 != 2\nE       assert 1 == 2, and what pytest shows of it\n",
	"django":         "test_x_%d (app.tests.Tests) ... ok\ntest_y_%d (app.tests.Tests) ... FAIL\nTraceback (most recent call last):\n  File \"x.py\", line 3, in y\n",
	"sympy":          "test_x_%d ok\ntest_y_%d F\n  File \"/testbed/sympy/core/x.py\", line 33, in test_y\n",
	"gotest":         "=== RUN   TestX%d\n--- PASS: TestX%d/sub (0.01s)\n    x_test.go:33: noise\n",
	"cargo":          "test a::b::c%d ... ok\ntest a::b::d%d ... FAILED\n   Compiling x v0.1.0\n",
	"jest":           "  suite %d\n    ✓ does what it should (5 ms)\n    ✕ fails %d\n      at Object.<anonymous> (x.js:3:4)\n",
	"vitest":         " ✓ src/x.test.ts > suite > does %d 5ms\n × src/y.test.ts > %d\n   at x.ts:3:4\n",
	"tap":            "ok %d does what it should\nnot ok %d fails\n  ---\n  at: x.js\n",
	"karma":          "Starting browser\n    suite %d\n      ✔ does %d\n  noise\n",
	"carbon":         "PASS packages/x/%d.js (5.3 s)\nFAIL packages/y/%d.js\n  ● x › y\n    at x.js\n",
	"redis":          "[ok]: does what it should %d (5 ms)\n[err]: fails %d in tests/unit/x.tcl\nnoise\n",
	"googletest":     "[ RUN      ] suite.test%d\n[       OK ] suite.test%d (0 ms)\n",
	"maven":          "+ mvn test -Dtest=A#b%d\n[INFO] noise %d\n[INFO] BUILD SUCCESS\n",
	"gradle_custom":  "org.apache.A > test%d PASSED\norg.apache.B > test%d FAILED\n    at x.java\n",
	"phpunit":        "Suite (Tests\\Suite%d)\n ✔ Does what it should %d\n ✘ Fails\n",
	"minitest":       "TestX#test_y%d = 0.01 s = .\nTestX#test_z%d. x = 0.01 s = F\nnoise\n",
	"p5js":           "  %d) suite\n       fails:\n  <a>x</a> noise %d\n  at x.js\n",
	"chart_js":       "Chrome 99.0 (Linux x86_64) suite does %d FAILED\n\x1b[32mnoise\x1b[0m %d\n",
	"openlayers":     "Chrome Headless 99.0 (Linux x86_64) suite does %d FAILED\nnoise %d\n",
	"eslint":         "  %d) suite\n       fails:\n     AssertionError: x\n      at %d\n",
	"calypso":        " ./node_modules/.bin/jest x\n  suite %d\n    ✓ does (5ms)\n    ✕ fails %d\n",
	"next":           " xvfb-run x\nStarting browser Chrome\n  suite %d\n    ✓ does\n    ✗ fails %d\n",
}

func BenchmarkParse(b *testing.B) {
	for _, name := range logs.Names() {
		form, ok := benchLines[strings.TrimPrefix(name, "parse_log_")]
		if !ok {
			continue
		}
		var text strings.Builder
		for i := 0; text.Len() < 4<<20; i++ {
			fmt.Fprintf(&text, form, i%1000, i%1000)
		}
		b.Run(name, func(b *testing.B) { parseAgain(b, name, text.String()) })
	}
}

func parseAgain(b *testing.B, name, text string) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := logs.Parse(name, text, subjects[0]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRealLogs reads the real logs, each by the parser of its row, from
// the file's bytes to the tests.
func BenchmarkRealLogs(b *testing.B) {
	texts, total := realLogs(b)
	b.SetBytes(int64(total))
	for b.Loop() {
		for parser, raws := range texts {
			for _, raw := range raws {
				text, err := logs.Text(raw)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := logs.Parse(parser, text, subjects[0]); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkRealParsers does so for each parser alone, without the reading.
func BenchmarkRealParsers(b *testing.B) {
	texts, _ := realLogs(b)
	for parser, raws := range texts {
		var all strings.Builder
		for _, raw := range raws {
			all.Write(raw)
		}
		b.Run(parser, func(b *testing.B) { parseAgain(b, parser, all.String()) })
	}
}

// realLogs are the stored logs of evaluations, by parser.
func realLogs(b *testing.B) (texts map[string][][]byte, total int) {
	b.Helper()
	parsers := map[string]string{}
	for _, set := range []string{"verified", "lite", "multilingual", "multimodal-dev"} {
		f := openGzip(b, corpustest.Beside(b, "swebench/"+set+".jsonl.gz"))
		for dec := json.NewDecoder(f); dec.More(); {
			var row struct {
				ID     string `json:"instance_id"`
				Parser string `json:"log_parser"`
			}
			if err := dec.Decode(&row); err != nil {
				b.Fatal(err)
			}
			parsers[row.ID] = row.Parser
		}
	}
	texts = map[string][][]byte{}
	for _, file := range corpustest.Files(b, corpustest.Beside(b, "eval-logs"), "*/*/test_output.txt.gz") {
		id := filepath.Base(filepath.Dir(file))
		var raw strings.Builder
		if _, err := io.Copy(&raw, openGzip(b, file)); err != nil {
			b.Fatal(err)
		}
		if parsers[id] == "" {
			b.Fatalf("no row for %s", id)
		}
		texts[parsers[id]] = append(texts[parsers[id]], []byte(raw.String()))
		total += raw.Len()
	}
	return texts, total
}

func openGzip(b *testing.B, path string) io.Reader {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() }) // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	return z
}
