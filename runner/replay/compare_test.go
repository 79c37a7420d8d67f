package replay

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

func recorded(output string) trajectories.Execution {
	return trajectories.Execution{Output: []byte(output), Bytes: int64(len(output))}
}

func result(output string) env.Result {
	return env.Result{Output: []byte(output), Bytes: int64(len(output))}
}

func TestNoise(t *testing.T) {
	for _, c := range []struct{ rule, then, now string }{
		{"uuids", "job 123e4567-e89b-42d3-a456-426614174000 done", "job 00000000-aaaa-4bbb-8ccc-426614174fff done"},
		{"temporary names", "in /tmp/mini-scratch-minidemo__ledger-17-1829/ledger", "in /var/folders/a/mini-scratch-minidemo__ledger-17-77/ledger"},
		{"temporary names", "rootdir: /tmp/pytest-of-user/pytest-12/test_a0", "rootdir: /tmp/pytest-of-root/pytest-0/test_a0"},
		{"temporary names", "/tmp/tmpabc123xy/out.txt: 3", "/tmp/tmp_zzzzzzq/out.txt: 3"},
		{"temporary names", "made tmp.aB3dE6gH9j", "made tmp.ZZZZZZZZZZ"},
		{"temporary names", "/tmp/go-build123456789/b001", "/tmp/go-build55501/b001"},
		{"temporary names", "/tmp/ccX1aB9z.o: undefined", "/tmp/ccf3Lq0a.o: undefined"},
		{"containers", "root@0a1b2c3d4e5f:/testbed", "root@ffeeddccbb00:/testbed"},
		{"addresses", "<object object at 0x7f3a5c0b1e50>", "<object object at 0x7ffe12345678>"},
		{"addresses", "at 0xc0001234 in", "at 0xc0009abc in"},
		{"addresses", "java.lang.Object@1b6d3586", "java.lang.Object@4554617c"},
		{"ports", "serving on http://127.0.0.1:44997/", "serving on http://127.0.0.1:43649/"},
		{"ports", "('127.0.0.1', 44997)", "('127.0.0.1', 51000)"},
		{"ports", "listening on [::]:44997", "listening on [::]:33000"},
		{"ports", "Port 44997 is open", "Port 45001 is open"},
		{"pids", "started, pid 4711", "started, pid 12"},
		{"pids", "[1] 4711", "[1] 99"},
		{"pids", "bash: line 3:  4711 Killed   ./a", "bash: line 3:    81 Killed   ./a"},
		{"pids", "==4711==ERROR: heap", "==9==ERROR: heap"},
		{"times", "2026-03-02 10:15:30,123 INFO up", "2026-11-22 08:13:56,001 INFO up"},
		{"times", "2026-03-02T10:15:30Z", "2026-11-22T08:13:56Z"},
		{"times", "log-20260302-101530", "log-20261122-081356"},
		{"times", "Mon Mar  2 10:15:30 UTC 2026", "Sun Nov 22 08:13:56 UTC 2026"},
		{"times", "Date:   Mon Mar 2 10:15:30 2026 +0000", "Date:   Sun Nov 22 08:13:56 2026 +0000"},
		{"times", "Mon, 02 Mar 2026 10:15:30 GMT", "Sun, 22 Nov 2026 08:13:56 GMT"},
		{"times", "-rw-r--r-- 1 root root 12 Mar  2 10:15 a", "-rw-r--r-- 1 root root 12 Nov 22 08:13 a"},
		{"times", `127.0.0.1 - - [02/Mar/2026 10:15:30] "GET /"`, `127.0.0.1 - - [22/Nov/2026 08:13:56] "GET /"`},
		{"times", "at 1772446530.25", "at 1795335236.5"},
		{"times", "10:15:30 INFO", "08:13:56 INFO"},
		{"commits", "[main 1a2b3c4] work", "[main 9f8e7d6] work"},
		{"commits", "commit " + strings.Repeat("a1", 20), "commit " + strings.Repeat("b2", 20)},
		{"durations", "== 3 passed in 0.12s ==", "= 3 passed in 10.12s ="},
		{"durations", "Ran 3 tests in 0.001s", "Ran 3 tests in 1.200s"},
		{"durations", "real\t0m0.123s", "real\t1m2.000s"},
		{"durations", "ok (12ms)", "ok (7ms)"},
		{"durations", "took 12 seconds", "took 9 seconds"},
		{"durations", `{"time": 0.0123}`, `{"time": 1.5}`},
		{"durations", "\x1b[32m0.12s\x1b[0m", "\x1b[32m1.12s\x1b[0m"},
		{"line order", "./a.py\n./b.py\nend", "./b.py\n./a.py\nend"},
	} {
		t.Run(c.rule+"/"+c.then, func(t *testing.T) {
			if !slices.ContainsFunc(rules(), func(r rule) bool { return r.name == c.rule }) && !strings.HasSuffix(c.rule, "order") {
				t.Fatalf("there is no rule %q", c.rule)
			}
			got := Compare(recorded("before\n"+c.then+"\nafter\n"), result("before\n"+c.now+"\nafter\n"), nil)
			if got.Match != Normalised || !slices.Equal(got.Rules, []string{c.rule}) {
				t.Errorf("%+v, want it normalised by %s alone", got, c.rule)
			}
			// The rule is needed, and it matches nothing else.
			if got := Compare(recorded(c.then+" and 1 more\n"), result(c.now+" and 2 more\n"), nil); got.Match != OutputDiffers {
				t.Errorf("%+v beside another difference, want that its output differs", got)
			}
		})
	}
}

// TestData checks that computed data that looks like noise is compared.
func TestData(t *testing.T) {
	for _, c := range []struct{ name, then, now string }{
		{"a date", "due 2024-02-29", "due 2024-03-01"},
		{"the date of the recording", "due 2026-03-02", "due 2026-03-03"},
		{"a written date", "29 Feb 2024", "28 Feb 2024"},
		{"a number of ten digits", "1234567890", "1234567891"},
		{"a port that somebody chose", "http://127.0.0.1:18080/", "http://127.0.0.1:15000/"},
		{"a constant", "0xdeadbeef", "0xdeadbabe"},
		{"a file that somebody named", "/tmp/patch1.txt", "/tmp/patch2.txt"},
		{"a number of seconds without a word of time", "5 s of film", "6 s of film"},
		{"a list", "[1, 2]", "[2, 1]"},
		{"a hash of content", "index 1a2b3c4..5d6e7f8 100644", "index 1a2b3c4..0000000 100644"},
		{"a missing line", "a\nb\n", "a\n"},
		{"one more line", "a\n", "a\nb\n"},
		{"no end of line", "a\n", "a"},
		{"a line twice", "a\na\nb\n", "a\nb\nb\n"},
		{"spaces", "a  b", "a b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Compare(recorded(c.then), result(c.now), nil); got.Match != OutputDiffers || got.Difference == "" {
				t.Errorf("%+v, want that its output differs", got)
			}
		})
	}
}

func TestEndings(t *testing.T) {
	x := recorded("same")
	x.ExitCode = 1
	if d := Compare(x, result("same"), nil).Difference; d != "exit code 0, recorded exit code 1" {
		t.Errorf("difference %q", d)
	}
	killed := recorded("tick 1\ntick 2\nti")
	killed.TimedOut, killed.ExitCode = true, -1
	r := result("tick 1\ntick 2\ntick 3\ntick 4\n")
	if f := Compare(killed, r, nil); f.Match != Diverged || !strings.HasPrefix(f.Difference, "exit code 0, recorded a timeout; line 3 is") {
		t.Errorf("%+v", f)
	}
	r.TimedOut, r.ExitCode = true, -1
	if got := Compare(killed, r, nil); got.Match != Normalised || !slices.Equal(got.Rules, []string{"timeout"}) {
		t.Errorf("how far it came counts: %+v", got)
	}
	r.Output = []byte("tick 1\ntick 2\ntick ")
	if got := Compare(killed, r, nil); got.Match != Normalised || !slices.Equal(got.Rules, []string{"timeout"}) {
		t.Errorf("how far its last line came counts: %+v", got)
	}
	r.Output = []byte("tick 1\ntock 2\ntick 3\n")
	if got := Compare(killed, r, nil); got.Match != OutputDiffers {
		t.Errorf("what it said before the timeout does not count: %+v", got)
	}
}

// TestPrintable checks recordings of other agents, which contain only the text shown to the model
// and no exit code.
func TestPrintable(t *testing.T) {
	x := recorded("OBSERVATION:\na\nb\n(Current directory: /testbed)")
	x.ExitCodeUnknown = true
	r := result("a\nb\n")
	r.ExitCode = 1
	if got := Compare(x, r, nil); got.Match != Normalised || !slices.Equal(got.Rules, []string{"wording"}) {
		t.Errorf("%+v", got)
	}
	for _, other := range []string{"a\nc\n", ""} {
		r.Output = []byte(other)
		if got := Compare(x, r, nil); got.Match != Diverged || strings.Contains(got.Difference, "exit code") {
			t.Errorf("%q: %+v", other, got)
		}
	}
}

func TestDifference(t *testing.T) {
	long := strings.Repeat("é", 300)
	for _, c := range []struct{ name, then, now, want string }{
		{"a line", "a\nb\n", "a\nc\n", `line 2 is "c", recorded "b"`},
		{"missing", "a\nb\n", "a\n", `line 2 is missing, recorded "b"`},
		{"more", "a\n", "a\nb\n", `line 2 is "b", nothing more is recorded`},
		{"an end", "a\n", "a", `line 1 is "a" without a newline, recorded "a"`},
		{"hostile", "a", "\x1b[2J\xff\u202e", `line 1 is "?[2J??", recorded "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Compare(recorded(c.then), result(c.now), nil).Difference; got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
	d := Compare(recorded(long+"1"+long), result(long+"2"+long), nil).Difference
	if n := utf8.RuneCountInString(d); n > 300 || !strings.Contains(d, "é2é") || !utf8.ValidString(d) {
		t.Errorf("%d characters: %s", n, d)
	}
}

// cut returns a truncated output.
func cut(text string, head, tail int) (kept []byte, at int) {
	return []byte(text[:head] + text[len(text)-tail:]), head
}

func TestTruncated(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		_, _ = fmt.Fprintf(&b, "line %d\n", i)
	}
	text := b.String()
	x := recorded(text)
	x.Output, x.Head = cut(text, 503, 707)
	x.Truncated = true
	r := result(text)
	same := func(name string, want Match) {
		t.Helper()
		if got := Compare(x, r, nil); got.Match != want {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
	same("all was kept now", Exact)
	r.Output, r.Head = cut(text, 303, 900)
	r.Truncated = true
	same("another part was kept now", Exact)
	r.Bytes += 100
	same("another length", OutputDiffers)
	r.Bytes -= 100
	r.Output = bytes.Replace(r.Output, []byte("line 3\n"), []byte("line x\n"), 1)
	same("another beginning", OutputDiffers)
	r.Output, r.Head = cut(strings.Replace(text, "line 997", "line 996", 1), 303, 900)
	same("another end", OutputDiffers)
	r = result("line 0\nline 1\n")
	same("much less now", OutputDiffers)
	x.Head = -7 // of a damaged record
	same("a head that cannot be", OutputDiffers)
	x.Head = 1 << 40
	same("a head that cannot be", OutputDiffers)
}

// TestBounds checks that huge outputs are compared in a short time.
func TestBounds(t *testing.T) {
	many := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			_, _ = fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, pair := range map[string][2]string{
		"no line is the same":   {many("a%d\n", 1<<16), many("b%d\n", 1<<16)},
		"one line":              {strings.Repeat("{1,", 1<<18), strings.Repeat("{2,", 1<<18)},
		"all braces":            {strings.Repeat("{", 1<<18) + "1", strings.Repeat("{", 1<<18) + "2"},
		"empty lines":           {"x" + strings.Repeat("\n", 1<<18), "y" + strings.Repeat("\n", 1<<18)},
		"noise beyond all care": {many("in 0.%ds\n", 1<<17) + "x", many("in 1.%ds\n", 1<<17) + "y"},
	} {
		if got := Compare(recorded(pair[0]), result(pair[1]), nil); got.Match != OutputDiffers || len(got.Difference) > 1000 {
			t.Errorf("%s: %s, %d bytes of difference", name, got.Match, len(got.Difference))
		}
	}
}

func FuzzCompare(f *testing.F) {
	f.Add("a\n{1, {2, 3}}\n", "2026-03-02 b\n", 1, true)
	f.Add("in 0.1s", "in 0.2s", 0, false)
	f.Fuzz(func(t *testing.T, a, b string, head int, truncated bool) {
		x, r := recorded(a), result(b)
		x.Head, x.Truncated = head, truncated
		got := Compare(x, r, nil)
		if got.Match == OutputDiffers && (got.Difference == "" || !utf8.ValidString(got.Difference) || strings.ContainsAny(got.Difference, "\n\x1b\x00")) {
			t.Errorf("difference %q", got.Difference)
		}
		if a == b && !truncated && got.Match != Exact {
			t.Errorf("the same is %+v", got)
		}
		back := recorded(b)
		if !truncated && Compare(back, result(a), nil).matches() != got.matches() {
			t.Errorf("%q and %q: alike one way only", a, b)
		}
	})
}

// TestIgnore checks the user's patterns.
func TestIgnore(t *testing.T) {
	const then, since = "random seed:        123\nhash randomization: on (PYTHONHASHSEED=77)\n1 passed\n", "random seed:        45678\nhash randomization: on (PYTHONHASHSEED=9)\n1 passed\n"
	ignore, err := ParseIgnore([]string{`random seed: +\d+$`, `(PYTHON)?HASHSEED=\d+`})
	if err != nil {
		t.Fatal(err)
	}
	if got := Compare(recorded(then), result(since), nil); got.Match != OutputDiffers {
		t.Errorf("without patterns: %+v", got)
	}
	if got := Compare(recorded(then), result(since), ignore); got.Match != Normalised || !slices.Equal(got.Rules, []string{"replay.ignore"}) {
		t.Errorf("%+v", got)
	}
	if got := Compare(recorded(then), result(since+"1 failed\n"), ignore); got.Match != OutputDiffers {
		t.Errorf("beside another difference: %+v", got)
	}
	for _, bad := range []string{"(", `\d*`} {
		if _, err := ParseIgnore([]string{bad}); err == nil {
			t.Errorf("the pattern %q is taken", bad)
		}
	}
}
