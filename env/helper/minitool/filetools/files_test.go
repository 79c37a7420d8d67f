package filetools_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/env/helper/minitool/filetools"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// call is the result of running a tool.
type call struct {
	code     int
	out, err string
}

// run runs a tool as a shell would. A nil input means /dev/null, as for commands of an
// agent.
func run(t testing.TB, input *string, args ...string) call {
	t.Helper()
	var out, errs bytes.Buffer
	in, err := os.Open(os.DevNull)
	if input != nil {
		file := filepath.Join(t.TempDir(), "stdin")
		require.NoError(t, os.WriteFile(file, []byte(*input), 0o600))
		in, err = os.Open(file)
	}
	require.NoError(t, err)
	defer in.Close()
	code := filetools.Run(args[0], args[1:], filetools.Streams{In: in, Out: &out, Err: &errs})
	return call{code, out.String(), errs.String()}
}

// workFolder creates a directory with files and changes to it.
func workFolder(t testing.TB, content map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range content {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
}

func contentOf(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

// noLeftovers fails the test if a directory contains other files than the named ones.
func noLeftovers(t testing.TB, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.Equal(t, strings.Join(want, " "), strings.Join(names, " "), "in %s", dir)
}

func modeOf(t testing.TB, name string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(name)
	require.NoError(t, err)
	return info.Mode()
}

func TestInvalidArguments(t *testing.T) {
	workFolder(t, map[string]string{"f": "a\nb\n"})
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"read nothing", []string{"read"}, "there is no FILE"},
		{"read two", []string{"read", "f", "g"}, "g is one argument too many"},
		{"an unknown option", []string{"read", "f", "--lines", "3"}, "there is no option --lines"},
		{"offset 0", []string{"read", "f", "--offset", "0"}, "--offset is 0; it must be a number from 1"},
		{"offset of words", []string{"read", "f", "--offset=two"}, "--offset is two"},
		{"limit below 1", []string{"read", "f", "--limit", "-1"}, "--limit is -1"},
		{"limit without a number", []string{"read", "f", "--limit"}, "--limit has no value"},
		{"an option twice", []string{"read", "f", "--limit", "1", "--limit=2"}, "--limit is there twice"},
		{"an empty name", []string{"read", ""}, "the name of the file is empty"},
		{"standard input as a file", []string{"read", "-"}, "a file called - is ./-"},
		{"write without a text", []string{"write", "f"}, "there is no text to write"},
		{"write with words", []string{"write", "f", "two", "words"}, "words is one argument too many; a text with spaces goes in quotes"},
		{"a value for none", []string{"edit", "f", "--all=yes", "--old", "a", "--new", "b"}, "--all takes no value"},
		{"edit with nothing", []string{"edit", "f"}, "neither --old and --new nor a block"},
		{"edit without new", []string{"edit", "f", "--old", "a"}, "--old and --new go together"},
		{"edit an empty text", []string{"edit", "f", "--old", "", "--new", "b"}, "the old text is empty; to make a file, use write"},
		{"edit nothing", []string{"edit", "f", "--old", "a", "--new", "a"}, "the same"},
		{"edit both ways", []string{"edit", "f", "-", "--old", "a", "--new", "b"}, "either --old and --new, or blocks"},
		{"edit with a text", []string{"edit", "f", "a"}, "the texts go behind --old and --new"},
		{"no such tool", []string{"remove", "f"}, "there is no such tool"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, nil, tt.args...)
			if got.code != 2 || got.out != "" || !strings.Contains(got.err, tt.want) {
				t.Errorf("%+v; want exit code 2 and %q", got, tt.want)
			}
			if tt.args[0] != "remove" && !strings.Contains(got.err, "usage: mini-tool "+tt.args[0]+" FILE") {
				t.Errorf("no usage: %s", got.err)
			}
		})
	}
	assert.Equal(t, "a\nb\n", contentOf(t, "f"), "the file is now")
}

func TestHelp(t *testing.T) {
	for _, s := range filetools.Specs() {
		got := run(t, nil, s.Name, "--help")
		if got.code != 0 || got.err != "" || !strings.Contains(got.out, "usage: mini-tool "+s.Name+" FILE") {
			t.Errorf("%+v", got)
		}
		for line := range strings.SplitSeq(s.Usage, "\n") {
			if !strings.HasPrefix(line, s.Name+" ") {
				t.Errorf("usage line %q does not begin with %s", line, s.Name)
			}
		}
	}
}

func TestNotRegularFiles(t *testing.T) {
	workFolder(t, map[string]string{"dir/f": "x\n", "f": "x\n"})
	require.NoError(t, mkfifo("fifo"))
	for _, tt := range []struct {
		file, want string
	}{
		{"nothing", "nothing: there is no such file"},
		{"no/such/file", "no/such/file: there is no such file, and no folder of that name"},
		{"dir", "dir is a folder"},
		{"fifo", "fifo is a pipe and not a file"},
		{"/dev/null", "/dev/null is a device and not a file"},
		{"f/x", "f/x: not a directory"},
		{"odd\nname\x1b", `"odd\nname\x1b": there is no such file`},
	} {
		for _, tool := range [][]string{{"read", tt.file}, {"edit", tt.file, "--old", "a", "--new", "b"}} {
			got := run(t, nil, tool...)
			if got.code != 1 || got.out != "" || !strings.Contains(got.err, tt.want) {
				t.Errorf("%q: %+v; want exit code 1 and %q", tool, got, tt.want)
			}
			if strings.Contains(got.err, "usage") || strings.Contains(got.err, "\x1b") {
				t.Errorf("%q: %q", tool, got.err)
			}
		}
	}
	for _, file := range []string{"dir", "fifo", "/dev/null", "f/x", "new/"} {
		if got := run(t, nil, "write", file, "text"); got.code != 1 || got.out != "" {
			t.Errorf("write %s: %+v", file, got)
		}
	}
	noLeftovers(t, ".", "dir", "f", "fifo")
}

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
	assert.Equal(t, 0, run(t, nil, "read", "late", "--limit", "1").code)
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
