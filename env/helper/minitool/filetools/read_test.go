package filetools_test

import (
	"fmt"
	"strings"
	"testing"
)

// numberedLines returns the lines "l1" to "ln".
func numberedLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "l%d\n", i+1)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	long := strings.Repeat("ä", 2000)
	for _, tt := range []struct {
		name, content string
		args          []string
		want          string
	}{
		{"a small file", "a\n\nb\n", nil, "f: 3 lines, 5 bytes; all of them\n1\ta\n2\t\n3\tb\n"},
		{"no line end at the end", "a\nb", nil, "f: 2 lines, 3 bytes; all of them\n1\ta\n2\tb\n"},
		{"one line", "a", nil, "f: 1 line, 1 byte; all of them\n1\ta\n"},
		{"an empty line", "\n", nil, "f: 1 line, 1 byte; all of them\n1\t\n"},
		{"empty", "", nil, "f is empty (0 lines, 0 bytes)\n"},
		{"numbers as wide as the last", numberedLines(12), []string{"--offset", "8", "--limit", "3"}, "f: 12 lines, 39 bytes; shown are 8 to 10\n 8\tl8\n 9\tl9\n10\tl10\n"},
		{"one of them", numberedLines(12), []string{"--limit=1"}, "f: 12 lines, 39 bytes; shown is 1\n1\tl1\n"},
		{"up to the end", numberedLines(3), []string{"--offset=3", "--limit=100"}, "f: 3 lines, 9 bytes; shown is 3\n3\tl3\n"},
		{"an offset without a line end", "a\nb", []string{"--offset", "2"}, "f: 2 lines, 3 bytes; shown is 2\n2\tb\n"},
		{"CRLF", "a\r\nb\r\n", nil, "f: 2 lines, 6 bytes; all of them; lines end in CRLF\n1\ta\n2\tb\n"},
		{"some CRLF", "a\r\nb\n", nil, "f: 2 lines, 5 bytes; all of them\n1\ta\r\n2\tb\n"},
		{"unicode, and bytes that are none", "ä→𝄞\n\xff\xfe\n", nil, "f: 2 lines, 13 bytes; all of them\n1\tä→𝄞\n2\t\xff\xfe\n"},
		{"2,000 characters", long + "\n", nil, "f: 1 line, 4001 bytes; all of them\n1\t" + long + "\n"},
		{"2,001 characters", long + "x\nb\n", nil, "f: 2 lines, 4004 bytes; all of them\n1\t" + long + " [line cut: 1 character more]\n2\tb\n"},
		{"a very long line", long + strings.Repeat("→", 100_000) + "\nb", nil, "f: 2 lines, 304002 bytes; all of them\n1\t" + long + " [line cut: 100000 characters more]\n2\tb\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			workFolder(t, map[string]string{"f": tt.content})
			got := run(t, nil, append([]string{"read", "f"}, tt.args...)...)
			if got.code != 0 || got.err != "" || got.out != tt.want {
				t.Errorf("%+v\nwant %q", got, tt.want)
			}
		})
	}
}

func TestReadLimits(t *testing.T) {
	workFolder(t, map[string]string{"f": numberedLines(2001)})
	got := run(t, nil, "read", "f")
	lines := strings.Split(strings.TrimSuffix(got.out, "\n"), "\n")
	if lines[0] != "f: 2001 lines, 10899 bytes; shown are 1 to 2000" || len(lines) != 2001 || lines[2000] != "2000\tl2000" {
		t.Errorf("%q, %d lines, %q", lines[0], len(lines), lines[len(lines)-1])
	}
	got = run(t, nil, "read", "f", "--offset", "2002")
	if got.code != 1 || got.err != "mini-tool: read: f has 2001 lines; there is no line 2002\n" {
		t.Errorf("%+v", got)
	}
	workFolder(t, map[string]string{"empty": ""})
	if got := run(t, nil, "read", "empty", "--offset", "2"); got.code != 1 || !strings.Contains(got.err, "empty has 0 lines; there is no line 2") {
		t.Errorf("%+v", got)
	}
}

func TestReadBinary(t *testing.T) {
	workFolder(t, map[string]string{"b": "\x7fELF\x00\x01", "w": "\xff\xfea\x00\n\x00", "late": strings.Repeat("x\n", 5000) + "\x00"})
	if got := run(t, nil, "read", "b"); got.code != 1 || !strings.Contains(got.err, "b is binary (6 bytes)") {
		t.Errorf("%+v", got)
	}
	if got := run(t, nil, "read", "w"); got.code != 1 || !strings.Contains(got.err, "iconv -f UTF-16 -t UTF-8") {
		t.Errorf("%+v", got)
	}
	if got := run(t, nil, "read", "late", "--limit", "1"); got.code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestReadOddNames(t *testing.T) {
	workFolder(t, map[string]string{"-x": "1\n", "--": "2\n", "a b": "3\n", "ü\n": "4\n", "-": "5\n"})
	for _, args := range [][]string{{"--", "-x"}, {"./-x"}, {"--", "--"}, {"a b"}, {"ü\n"}, {"--", "-"}, {"--limit", "1", "--", "-x"}} {
		if got := run(t, nil, append([]string{"read"}, args...)...); got.code != 0 || strings.Count(got.out, "\n") != 2 {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := run(t, nil, "read", "-x"); got.code != 2 || !strings.Contains(got.err, "goes behind --") {
		t.Errorf("%+v", got)
	}
}
