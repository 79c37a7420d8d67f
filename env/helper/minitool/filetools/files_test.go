package filetools_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/env/helper/minitool/filetools"
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
		if err := os.WriteFile(file, []byte(*input), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err = os.Open(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	code := filetools.Run(args[0], args[1:], filetools.Streams{In: in, Out: &out, Err: &errs})
	return call{code, out.String(), errs.String()}
}

// workFolder creates a directory with files and changes to it.
func workFolder(t testing.TB, content map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range content {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func contentOf(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// noLeftovers fails the test if a directory contains other files than the named ones.
func noLeftovers(t testing.TB, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("in %s are %q, want %q", dir, names, want)
	}
}

func modeOf(t testing.TB, name string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
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
	if got := contentOf(t, "f"); got != "a\nb\n" {
		t.Errorf("the file is %q now", got)
	}
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
	if err := mkfifo("fifo"); err != nil {
		t.Fatal(err)
	}
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
