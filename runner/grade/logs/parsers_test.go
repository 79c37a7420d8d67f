package logs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade/logs"
)

// A case is a log and its expected tests, as "name=STATUS" in order. A nil want means a crash.
type parserCase struct {
	parser string
	text   string
	want   []string
}

var none = []string{}

// The formats and quirks of each parser, in the order of the specification. TestConformance has
// real logs.
var parserCases = map[string]parserCase{
	"pytest": {"pytest", "PASSED a::b\nFAILED a::c - why - not\n PASSED indented\nSKIPPED [2] x.py:3: no\nXFAIL\nERROR: x\nXFAILED y\nPASSED [100%]", []string{"a::b=PASSED", "a::c=FAILED", "x=ERROR:", "y=XFAILED", "[100%]=PASSED"}},
	"pytest cuts ids at any space of Unicode": {"pytest", "PASSED a\u2003b\nPASSED\u00a0c\nPASSED d\x1ce\nPASSED f\x00g\n", []string{"a=PASSED", "c=PASSED", "d=PASSED", "f\x00g=PASSED"}},
	"pytest takes dashes for spaces":          {"flask", "FAILED - a\nFAILED  - - b\nFAILED -c\nPASSED - d", []string{"a=FAILED", "-=PASSED", "-c=FAILED"}},
	"pytest keeps the first place":            {"xarray", "PASSED a\nPASSED b\nFAILED a", []string{"a=FAILED", "b=PASSED"}},
	"skip counts are of any digits":           {"pvlib", "SKIPPED [١٢] x\nSKIPPED [] y\nSKIPPED [1 z\nSKIPPEDX [1]", []string{"[]=SKIPPED", "[1=SKIPPED", "[1]=SKIPPEDX"}},
	"options":                                 {"pylint", "PASSED t[/a/b/c]\nPASSED t[//a/b]\nPASSED t[/a/*]\nPASSED t[x]y\nPASSED t[/a/b\nPASSED t]u[\nPASSED t[/a][/b/c]z", []string{"t[/c]=PASSED", "t[//a/b]=PASSED", "t[/a/*]=PASSED", "t[x]=PASSED", "t[/a/b=PASSED", "t]u[=PASSED"}},
	"matplotlib":                              {"matplotlib", "PASSED t[MouseButton.LEFT-MouseButton.RIGHT]\nSKIPPED [MouseButton.LEFT] x", []string{"t[1-3]=PASSED"}},
	"pytest v2":                               {"pytest_v2", "PASSED t[a b] - x\nFAILED t[c  d] - x - y\nSKIPPED [1] z\n\x1b[32mPASSED\x1b[0m e\nPASSED\tf\n\x1b[1;31mFAILED g\nid h\u00a0XFAIL\nthe suite has PASSED\nid PASSED   [ 10%]\nPASSED ", []string{"t[a b] - x=PASSED", "t[c d]=FAILED", "e=PASSED", "id h=XFAIL", "the suite has=PASSED"}},
	"seaborn":                                 {"seaborn", "FAILED\nFAILED a - x\nb PASSED [1%]\nc d PASSED [1%]\nPASSED e\nSKIPPED f\nPASSED g PASSED h\nx PASSED", []string{"a=FAILED", "b=PASSED", "e=PASSED"}},
	"sympy":                                   {"sympy", "test_a ok\ntest_b[1] F\n  test_c E\ntest_d f\ntest_e ok [OK]\n___ sympy/x.py:test_a ___\n y z.py:w \n a.py:b", []string{"sympy/x.py:test_a=FAILED", "y z.py:w=FAILED", "test_a=PASSED", "test_b[1]=FAILED", "test_c=ERROR"}},
	"django":                                  {"django", "a (m.T) ... ok\nb (m.T) ... FAIL\nokay\nc ... skipped 'x'\nd ... ERROR\nFAIL: b (m.T)\ne ...  OK\nf ... expected failure\nERROR:x g", []string{"a (m.T)=PASSED", "b (m.T)=PASSED", "c=SKIPPED", "d=ERROR", "b=FAILED", "e=PASSED", "g=ERROR"}},
	"django ok":                               {"django", "ok\na ... noise\nmore\n  ok (0.1s)", []string{"a=PASSED"}},
	"django migration":                        {"django", "Applying sites.0002_alter_domain_unique...test_no_migrations (x) ... ok\n--version is equivalent to version", []string{"test_no_migrations (x)=PASSED", "--version is equivalent to version=PASSED"}},
	"django interrupted":                      {"django", "a ... Testing against Django installed in 'x'\ny (0 silenced).\nok\nb ... Internal Server Error: /u/\nok\nc\n...\nSystem check identified no issues (0 silenced)\nok", []string{"a=PASSED", "b=PASSED", "c=PASSED"}},
	"django not interrupted":                  {"django", "a ...Testing against Django installed in  silenced).\nok\nb ... Internal Server Error: /u\nno\nc ... System check identified no issues (0 silenced)\nnot ok", none},
	"django crash":                            {"django", "a ... ok\nFAIL:\n", nil},
	"redis":                                   {"redis", "[ok]: a b (5 ms)\n[err]: c in tests/x.tcl (1s)\n[skip]: d\n[ignore]: e\n[ok]:f\n[ok]: (5 ms)\n[err]: g in h in i", []string{"a b=PASSED", "c=FAILED", "d=SKIPPED", "e=SKIPPED", "(5 ms)=PASSED", "g in h=FAILED"}},
	"jq":                                      {"jq", "  PASS: a\nFAIL:  b\nPASS:\nPASS:c", []string{"a=PASSED", " b=FAILED"}},
	"micropython":                             {"micropython_test", "pass  a.py\nFAIL b.py\nskip\tc.py d\npassed e\npass", []string{"a.py=PASSED", "b.py=FAILED", "c.py d=SKIPPED"}},
	"googletest":                              {"googletest", "[       OK ] a.b (0 ms)\nx [ FAILED ] c (d) (1 ms)\n[ OK ] e\n[ RUN ] f (0 ms)\n[OK] [FAILED]  (0)", []string{"a.b=PASSED", "c (d)=FAILED", "=FAILED"}},
	"doctest":                                 {"doctest", "x<doctest><TestCase name=\"a\"><SubCase name=\"b\"><Expression success=\"true\"/><SubCase><Expression success=\"false\"/></SubCase></SubCase><SubCase name=\"c\"/></TestCase></doctest>y", []string{"a > b=FAILED", "a > None=FAILED", "a > c=PASSED"}},
	"doctest without":                         {"doctest", "no tests", none},
	"doctest cut off":                         {"doctest", "<doctest><TestCase/>", nil},
	"doctest attributes":                      {"doctest", "<doctest xmlns:n=\"u\"><TestCase\nname = 'a&#9;b\tc\nd'><SubCase n:name=\"x\" name=\"&#10;<e\"/></TestCase></doctest>", nil},
	"doctest references":                      {"doctest", "<doctest xmlns:n=\"u\"><TestCase\nname = 'a&#9;b\tc\nd'><SubCase n:name=\"x\" name=\"&#10;&lt;e\"/></TestCase></doctest>", []string{"a\tb c d > \n<e=PASSED"}},
	"doctest malformed":                       {"doctest", "<doctest><TestCase></doctest>", nil},
	"gotest":                                  {"gotest", "--- PASS: A (0.0s)\n    --- FAIL: A/b (c) (0.0s)\n--- SKIP: D (x)\n--- PASS: E ()\nok --- PASS: F (1s)", []string{"A=PASSED", "A/b (c)=FAILED", "D=SKIPPED"}},
	"cargo":                                   {"cargo", "test a::b ... ok\n test c ... FAILED\ntest d ... ignored\ntest e - should panic ... ok\ntest f ... ok 1", []string{"a::b=PASSED", "c=FAILED"}},
	"phpunit":                                 {"phpunit", " ✔ a\nSuite (X\\Y)\n ✘ b \n ↩c\n ∅ d\nOK (1 test)\n✔\nÉa (b)\n ✔ e", []string{"None > a=PASSED", "Suite > b =FAILED", "Suite > c=SKIPPED", "OK > =PASSED", "Éa > e=PASSED"}},
	"maven":                                   {"maven", "BUILD FAILURE\n+ mvn -Dtest=A -Dtest=B x\n+ mvn -Dtest=C\n[INFO] BUILD SUCCESS\nBUILD SUCCESS!\n+ -Dtest= -x", []string{"B=PASSED", "C=FAILED"}},
	"ant":                                     {"ant", "  [junit] [PASS] a b\n[junit]  [FAIL]  c\n[junit] [ERR] d\n[junit][PASS] e", []string{"a b=PASSED", "c=FAILED", "d=FAILED"}},
	"gradle":                                  {"gradle_custom", "A > b PASSED\nC > d\nnoise\nFAILED\n> Task x FAILED\nBUILD FAILED\nE > f\nG > h  PASSED\nPASSED\nx PASSED", []string{"A > b=PASSED", "C > d=FAILED", "BUILD=FAILED", "G > h =PASSED"}},
	"minitest":                                {"minitest", "A#test. x = 0.01 s = .\nB. y. z = 1 s = F\nC. = E x\nD = .", []string{"A#test=PASSED", "B. y=FAILED", "C=FAILED"}},
	"cucumber":                                {"cucumber", "a b ....\nc ...F..\nd .\ne .F", []string{"a b=PASSED", "c=FAILED", "e=FAILED"}},
	"ruby unit":                               {"ruby_unit", "test: a:\t.: (0.1)\nb: E\nc: Error\nd: O: x\ne: F: y: .\ntest: .", []string{"a=PASSED", "b=FAILED", "d=SKIPPED", "e: F: y=PASSED", "test=PASSED"}},
	"rspec":                                   {"rspec_transformed_json", "a - passed\nb - passed - failed more\nc - pending\n - passed", []string{"a=PASSED", "b - passed=FAILED"}},
	"jest":                                    {"jest", "  ✓ a (5 ms)\n✕ b\n○ skipped c\n✓ d (1.5 s)\n✓  e  (5ms)\n✓f", []string{"a=PASSED", "b=FAILED", "skipped c=SKIPPED", "d (1.5 s)=PASSED", "e=PASSED"}},
	"jest json":                               {"jest_json", "[PASSED] a\n[FAILED]  b\n[PASSED]c", []string{"a=PASSED", " b=FAILED"}},
	"vitest":                                  {"vitest", "✓ a > b 5ms\n× c\n↓ d [skipped]\n✓ e 12\n✓ f 5 s\n✓ 7ms\n✓ g 1 2", []string{"a > b=PASSED", "c=FAILED", "d=SKIPPED", "e=PASSED", "f=PASSED", "7ms=PASSED", "g 1=PASSED"}},
	"tap":                                     {"tap", "ok 1 a\n not ok 2 - b # TODO\nok  3 c\nok 4  d\nok 5", []string{"a=PASSED", "- b # TODO=FAILED", " d=PASSED"}},
	"karma":                                   {"karma", "  ✔ no\nStarting browser X\n    a\n      ✔ b\n      c\n      ✖ d\n    e\n    ✔ f\nSUMMARY:\n ✔ g", []string{"a > b=PASSED", "a > c > d=FAILED", "a > f=PASSED"}},
	"karma crash":                             {"karma", "Starting browser\n      a\n    b\n   c", nil},
	"carbon":                                  {"carbon", "PASS a.js (5.3ms)\nFAIL b (5 s) x\nPASS c (1s)\nPASS d (1s) (2ms) (3 s)\nPASS e\n PASS f\nFAIL", []string{"a.js=PASSED", "b=FAILED", "c=PASSED", "d (1s)=PASSED", "e=PASSED"}},
	"grommet":                                 {"grommet", "PASS a (5.3 s)\nFAIL b\nFAIL\nPASS b\n PASS c\nPASS (1) (2ms)", []string{"b=PASSED", "PASS b=FAILED", "a=PASSED", "(1)=PASSED"}},
	"calypso":                                 {"calypso", "x ./node_modules/.bin/jest a\n  s\n    ✓ t (5ms)\n    ✕ u (5 ms)\n  ● x\n    ✓ no\n ./node_modules/.bin/jest b\n ✓ v\n\tw", []string{"s - t=PASSED", "s - u (5 ms)=FAILED", "s - v=PASSED"}},
	"calypso without suites":                  {"calypso", " ./node_modules/.bin/jest \n ✓ a \n ✕ ", []string{"- a=PASSED", "-=FAILED"}},
	"calypso crash":                           {"calypso", " ./node_modules/.bin/jest \n✓ a", nil},
	"calypso time":                            {"calypso", " ./node_modules/.bin/jest \n ✓ a (5ms) b", nil},
	"chart.js":                                {"chart_js", "\x1b[31mChrome 1.2 (Linux) a b FAILED\x1b[0m\nChrome 1 (x) c FAILED \nChrome\n2 (y) d FAILED", []string{"a b =FAILED", "d =FAILED"}},
	"bpmn-js":                                 {"bpmn_js", "HeadlessChrome 1 (Linux 2) a FAILED\n2KPhantomJS 1 (Linux 2) b FAILED\nChrome Headless 1 (Linux x86_64) c FAILED\n2KPhantomJS 1 (Linux x86_64) d FAILED", []string{"b =FAILED", "c =FAILED", "a =FAILED"}},
	"openlayers":                              {"openlayers", "Chrome Headless 1 (Linux x86_64)  a  b FAILED\nChrome 1 (Linux x) c FAILED\n  1) d\n  e:\nError: f\ncase g: mismatch 1\ncase h:\nmismatch", []string{"a b=FAILED", "c=FAILED", "d e:=FAILED", "g=FAILED", "h=FAILED"}},
	"eslint":                                  {"eslint", "  1) a\n   b:\n   AssertionError [x]: Error\n 2) no Error\n\n \n3) c: TypeError  4) d\n e", []string{"a b:=FAILED", "=FAILED"}},
	"marked":                                  {"marked", "1) a \n 2) b\n3)c\n12)\td", []string{"a=FAILED", "d=FAILED"}},
	"highlight.js":                            {"highlightjs", "  s\n    t\n    ✓ a (5ms)\n  1) b\n\n  2 passing\n  ✔ c", []string{"t.a=PASSED", "t.b=FAILED"}},
	"prism":                                   {"prismjs", "+ ./node_modules/.bin/mocha tests/run.js --reporter json\nx {\"passes\":[{\"fullTitle\":\"a\"}],\"failures\":[{\"fullTitle\":\"b\"}]} y", []string{"b=FAILED", "a=PASSED"}},
	"prism without a list":                    {"prismjs", "./node_modules/.bin/mocha tests/run.js --reporter json {\"Passes\":[],\"failures\":[]}", nil},
	"prism without JSON":                      {"prismjs", "./node_modules/.bin/mocha tests/run.js --reporter json", nil},
	"p5.js":                                   {"p5js", "{\n1) no:\n}\n  1) a b\n       c:\n  2) d\n e:\n3)f: [\n  4) g:", []string{"a b:c=FAILED"}},
	"p5.js XML":                               {"p5js", "<a>\n 1) no:<a></a></a>\n 2) x:\n<b> 3) y:", []string{"x=FAILED"}},
	"p5.js seams":                             {"p5js", "<a<b></b>>\n 1) no:\n</a>\n<c>\n 2) no:\n</<d></d>c>\n 3) x:", []string{"x=FAILED"}},
	"quarto":                                  {"quarto_cli", "[smoke] a /tmp/x1.qmd ... \x1b[32mok\n[unit] b /tmp/x2/y ... \x1b[31mFAILED\n[smoke] c /tmp/x1.qmd ...\n[unit] 34mINFO\nERRORS\n[unit] d", []string{"[smoke] a /tmp/0=PASSED", "[unit] b /tmp/1y=FAILED", "[smoke] c /tmp/0=FAILED"}},
}

func TestParsers(t *testing.T) {
	for name, c := range parserCases {
		t.Run(name, func(t *testing.T) { checkTests(t, c, logs.InstanceInfo{InstanceID: "x__x-1", Version: "1.0"}) })
	}
}

// subjectCases are cases of parsers that depend on the instance.
var subjectCases = map[string]struct {
	of logs.InstanceInfo
	parserCase
}{
	"jekyll minitest":  {logs.InstanceInfo{InstanceID: "jekyll__jekyll-9141"}, parserCase{"jekyll", "A. = .\nb ..", []string{"A=PASSED"}}},
	"jekyll cucumber":  {logs.InstanceInfo{InstanceID: "jekyll__jekyll-8771"}, parserCase{"jekyll", "A. = .\nb ..", []string{"b=PASSED"}}},
	"jekyll unknown":   {logs.InstanceInfo{InstanceID: "jekyll__jekyll-1"}, parserCase{"jekyll", "", nil}},
	"jekyll nameless":  {logs.InstanceInfo{InstanceID: "jekyll"}, parserCase{"jekyll", "", nil}},
	"immutable 2006":   {logs.InstanceInfo{InstanceID: "i-2006"}, parserCase{"immutable_js", "✓ a\n[PASSED] b", []string{"a=PASSED"}}},
	"immutable 2005":   {logs.InstanceInfo{InstanceID: "i-2005"}, parserCase{"immutable_js", "✓ a\n[PASSED] b", []string{"b=PASSED"}}},
	"immutable other":  {logs.InstanceInfo{InstanceID: "i-7"}, parserCase{"immutable_js", "", nil}},
	"lighthouse mocha": {logs.InstanceInfo{Version: "9.5"}, parserCase{"lighthouse", "✔ no\nrunning 2 test files\n  s\n    t\n      ✔ a (5ms)\n    1) b\n  ✔ c\n 2 passing\n ✔ d", []string{"t - a=PASSED", "t - b=FAILED", "t - c=PASSED"}}},
	"lighthouse jest":  {logs.InstanceInfo{Version: " 3_0.5 "}, parserCase{"lighthouse", "PASS a (1s)", []string{"a=PASSED"}}},
	"lighthouse json":  {logs.InstanceInfo{Version: "2.9"}, parserCase{"lighthouse", "./node_modules/.bin/mocha --reporter json\n\"failures\": [\n\"fullTitle\": \"b\",\n],\n\"passes\": [\n\"fullTitle\": \"a\",\n]", []string{"a=PASSED", "b=FAILED"}}},
	"lighthouse hex":   {logs.InstanceInfo{Version: "0x5"}, parserCase{"lighthouse", "", nil}},
	"next karma":       {logs.InstanceInfo{Version: "1.20"}, parserCase{"next", "+ xvfb-run x\n  no\nStarting browser Chrome\n  s\n  \x1b[32m✓ a\x1b[0m\n  info\n    ✗  b\nAssertionError: #\n ✓ c\n\nTOTAL\n ✓ d", []string{"s - a=PASSED", "s - b=FAILED"}}},
	"next cypress":     {logs.InstanceInfo{Version: "1.27"}, parserCase{"next", "Running: x (1 of 2)\n\n\n  s\n    ✓ a (b) (5ms)\n    1) c \nRunning: y)\n\n\n  t\n    ✓ d (1ms)\n", []string{"s: c=FAILED", "s: a (b)=PASSED", "t: d=PASSED"}}},
}

func TestParsersOfSubjects(t *testing.T) {
	for name, c := range subjectCases {
		t.Run(name, func(t *testing.T) { checkTests(t, c.parserCase, c.of) })
	}
}

func checkTests(t *testing.T, c parserCase, of logs.InstanceInfo) {
	t.Helper()
	tests, err := logs.Parse("parse_log_"+c.parser, c.text, of)
	if c.want == nil {
		var crash *logs.CrashError
		if !errors.As(err, &crash) || crash.Parser != "parse_log_"+c.parser {
			t.Fatalf("the error is %v, want a crash", err)
		}
		return
	}
	require.NoError(t, err)
	got := []string{}
	for name, s := range tests.All() {
		got = append(got, name+"="+string(s))
		if again, ok := tests.Get(name); !ok || again != s {
			t.Errorf("Get(%q) is %q, %v", name, again, ok)
		}
	}
	assert.Equal(t, c.want, got, "tests")
}

func TestUnknownParser(t *testing.T) {
	_, err := logs.Parse("parse_log_none", "", logs.InstanceInfo{})
	assert.ErrorIs(t, err, logs.ErrUnknownParser)
	if logs.IsKnown("parse_log_none") || !logs.IsKnown("parse_log_pytest") || len(logs.Names()) != 57 {
		t.Errorf("%d parsers are known, want 57", len(logs.Names()))
	}
}

// TestEveryParserHasCases checks that the tables have cases for every parser. Names that share a
// function count as one parser.
func TestEveryParserHasCases(t *testing.T) {
	var have strings.Builder
	for _, c := range parserCases {
		have.WriteString(" " + c.parser + " ")
	}
	for _, c := range subjectCases {
		have.WriteString(" " + c.parser + " ")
	}
	aliases := " astroid marshmallow pyvista sqlfluff pydicom requests pytest_options astropy scikit sphinx react_pdf "
	for _, name := range logs.Names() {
		if short := " " + strings.TrimPrefix(name, "parse_log_") + " "; !strings.Contains(have.String()+aliases, short) {
			t.Errorf("%s has no case", name)
		}
	}
}
