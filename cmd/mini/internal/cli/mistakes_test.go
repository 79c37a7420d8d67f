package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/shell"

	"github.com/minibench/mini/cmd/mini/internal/cli"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets/hub/hubtest"
)

// mistake is a block of a golden file: a command with a mistake, and the response of
// mini.
type mistake struct {
	about   string // lines beginning with #
	command string // after "$ "
	exit    int
	output  string
}

// TestMistakes runs every command of testdata/mistakes.golden in this process and
// compares the output with the file.
func TestMistakes(t *testing.T) {
	place := newMistakePlace(t)
	checkMistakes(t, "testdata/mistakes.golden", place.run)
}

// checkMistakes runs the commands of a golden file one after the other and compares the
// output with the file; -update rewrites the file. The output must have one or two lines,
// the exit code must be 2 or 3, and no run may be left behind.
func checkMistakes(t *testing.T, path string, run func(*testing.T, mistake) mistake) {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	table := readMistakes(t, path)
	got := make([]mistake, len(table))
	for i, m := range table {
		t.Run(fmt.Sprintf("%02d %s", i+1, m.command), func(t *testing.T) {
			got[i] = m // if the test is skipped
			result := run(t, m)
			got[i] = result
			if n := strings.Count(result.output, "\n"); n < 1 || n > 2 {
				t.Errorf("%d lines:\n%s", n, result.output)
			}
			if result.exit != 2 && result.exit != 3 {
				t.Errorf("exit code %d:\n%s", result.exit, result.output)
			}
			if diff := cmp.Diff(m, result, cmp.AllowUnexported(mistake{})); diff != "" && !*update {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	if *update {
		if err := os.WriteFile(path, []byte(writeMistakes(got)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// readMistakes parses the blocks of the file, which blank lines separate.
func readMistakes(t *testing.T, path string) []mistake {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var table []mistake
	for block := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		var m mistake
		for line := range strings.Lines(strings.TrimRight(block, "\n") + "\n") {
			switch {
			case strings.HasPrefix(line, "# ") && m.command == "":
				m.about += line
			case strings.HasPrefix(line, "$ ") && m.command == "":
				m.command = strings.TrimSpace(line[2:])
			case m.output == "" && m.exit == 0 && strings.HasPrefix(line, "exit "):
				if _, err := fmt.Sscanf(line, "exit %d", &m.exit); err != nil {
					t.Fatalf("%s: %q: %v", path, line, err)
				}
			default:
				m.output += line
			}
		}
		if m.command != "" || m.about != "" {
			table = append(table, m)
		}
	}
	return table
}

func writeMistakes(table []mistake) string {
	var s strings.Builder
	for i, m := range table {
		if i > 0 {
			s.WriteString("\n")
		}
		fmt.Fprintf(&s, "%s$ %s\nexit %d\n%s", m.about, m.command, m.exit, m.output)
	}
	return s.String()
}

// mistakePlace holds the environment of the commands.
type mistakePlace struct {
	env  []string
	hide *strings.Replacer // replaces addresses that differ between runs
}

func newMistakePlace(t *testing.T) *mistakePlace {
	t.Helper()
	closed := closedAddress
	good, limited := newTestHub(t, "mini-no-such-image:1"), hubtest.New(t)
	limited.RateLimit(1000, 3600)
	hub := good.URL
	return &mistakePlace{
		env: []string{
			"PATH=" + os.Getenv("PATH"), "DOCKER_HOST=" + os.Getenv("DOCKER_HOST"), "TERM=dumb",
			"HUB=" + hub, "CLOSED=" + closed, "HF_ENDPOINT=" + hub, "LIMITED=" + limited.URL, noRaceSleep,
		},
		hide: strings.NewReplacer(hub, "$HUB", closed, "$CLOSED", limited.URL, "$LIMITED",
			strings.TrimPrefix(hub, "http://"), "$HUB", strings.TrimPrefix(limited.URL, "http://"), "$LIMITED"),
	}
}

// closedAddress is an address on which no server listens: programs do not get the ports
// below 1024 by chance.
const closedAddress = "127.0.0.1:1"

// varying matches numbers that differ between runs.
var varying = regexp.MustCompile(`process \d+|\b\d+(\.\d+)?m?s\b`)

// files returns a folder with the files of testdata/mistakes, and the environment there.
func (p *mistakePlace) files(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/mistakes")); err != nil {
		t.Fatal(err)
	}
	// Use a separate temporary folder: in a shared one, mini would find and report the
	// leftovers of other tests' processes.
	return dir, append(p.env[:len(p.env):len(p.env)], "TMPDIR="+t.TempDir(), "HOME="+dir+"/home", "XDG_CACHE_HOME="+dir+"/home/cache", "XDG_STATE_HOME="+dir+"/home/state")
}

// result returns m with the response of the command.
func (p *mistakePlace) result(t *testing.T, m mistake, dir string, exit int, output string) mistake {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(dir, "mini-runs", "*")); err != nil || len(left) > 0 {
		t.Errorf("a run was left behind: %v, %v", left, err)
	}
	m.exit, m.output = exit, varying.ReplaceAllString(strings.ReplaceAll(p.hide.Replace(output), dir, "$DIR"), "N")
	return m
}

// run runs a command, with variables before it, in this process.
func (p *mistakePlace) run(t *testing.T, m mistake) mistake {
	t.Helper()
	dir, env := p.files(t)
	t.Chdir(dir)
	setEnvironment(t, env)
	args, err := shell.Fields(m.command, nil)
	if err != nil {
		t.Fatal(err)
	}
	for args[0] != "mini" {
		name, value, _ := strings.Cut(args[0], "=")
		t.Setenv(name, value)
		args = args[1:]
	}
	var out bytes.Buffer
	code := cli.Main(args[1:], cmdutil.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	return p.result(t, m, dir, code, out.String())
}

// setEnvironment replaces the environment of this process until the test ends.
func setEnvironment(t *testing.T, env []string) {
	t.Helper()
	before := os.Environ()
	replace := func(env []string) {
		os.Clearenv()
		for _, v := range env {
			name, value, _ := strings.Cut(v, "=")
			if err := os.Setenv(name, value); err != nil { //nolint:usetesting // t.Setenv removes nothing
				t.Error(err)
			}
		}
	}
	replace(env)
	t.Cleanup(func() { replace(before) })
}
