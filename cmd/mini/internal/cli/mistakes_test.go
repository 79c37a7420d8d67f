package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets/hub/hubtest"
)

// mistake is a block of testdata/mistakes.golden: a command with a mistake, and the
// response of mini.
type mistake struct {
	about   string // lines beginning with #
	command string // after "$ "
	exit    int
	output  string
}

// TestMistakes runs every command of testdata/mistakes.golden and compares the output
// with the file; -update rewrites the file. The output must have one or two lines, the
// exit code must be 2 or 3, and no run may be left behind.
func TestMistakes(t *testing.T) {
	path, err := filepath.Abs("testdata/mistakes.golden")
	if err != nil {
		t.Fatal(err)
	}
	table := readMistakes(t, path)
	if len(table) < 40 {
		t.Errorf("%d mistakes, want at least 40", len(table))
	}
	place := newMistakePlace(t)
	got := make([]mistake, len(table))
	t.Run("all", func(t *testing.T) {
		for i, m := range table {
			t.Run(fmt.Sprintf("%02d %s", i+1, m.command), func(t *testing.T) {
				t.Parallel()
				got[i] = place.run(t, m)
				if reason, skipped := skipReason(got[i].output); skipped {
					got[i] = m
					t.Skip(reason)
				}
				if n := strings.Count(got[i].output, "\n"); n < 1 || n > 2 {
					t.Errorf("%d lines:\n%s", n, got[i].output)
				}
				if got[i].exit != 2 && got[i].exit != 3 {
					t.Errorf("exit code %d:\n%s", got[i].exit, got[i].output)
				}
				if diff := cmp.Diff(m, got[i], cmp.AllowUnexported(mistake{})); diff != "" && !*update {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
			})
		}
	})
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

// skipPrefix begins the output of the functions in prelude on machines that lack what
// a case needs.
const skipPrefix = "SKIP: "

func skipReason(output string) (string, bool) {
	return strings.CutPrefix(strings.TrimSpace(output), skipPrefix)
}

// prelude defines functions for the commands of the table: full_disk provides a full
// disk, and plain_user removes root's right to ignore permissions.
const prelude = `
full_disk() { # COMMAND...: with a full disk of 64 KB in ./full
  mkdir -p full
  unshare -m true 2>/dev/null && map= || map=-r
  unshare $map -m true 2>/dev/null || { echo "SKIP: this machine lets nobody mount" >&2; exit 0; }
  unshare $map -m bash -c 'mount -t tmpfs -o size=64k tmpfs full && "$@"' - "$@"
}
plain_user() { # COMMAND...: permissions hold, also for root
  ((EUID)) && { "$@"; return; }
  command -v setpriv >/dev/null || { echo "SKIP: root, without setpriv" >&2; exit 0; }
  setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search "$@"
}
`

// mistakePlace holds the environment of the commands.
type mistakePlace struct {
	bin  string // folder that contains mini
	env  []string
	hide *strings.Replacer // replaces addresses that differ between runs
}

func newMistakePlace(t *testing.T) *mistakePlace {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "mini")); err != nil {
		t.Fatal(err)
	}
	closed := closedAddress(t)
	good, limited := newTestHub(t, "mini-no-such-image:1"), hubtest.New(t)
	limited.RateLimit(1000, 3600)
	hub := good.URL
	return &mistakePlace{
		bin: bin,
		env: []string{
			"PATH=" + bin + ":" + os.Getenv("PATH"), "DOCKER_HOST=" + os.Getenv("DOCKER_HOST"), "TERM=dumb",
			"HUB=" + hub, "CLOSED=" + closed, "HF_ENDPOINT=" + hub, "LIMITED=" + limited.URL, noRaceSleep,
		},
		hide: strings.NewReplacer(hub, "$HUB", closed, "$CLOSED", limited.URL, "$LIMITED",
			strings.TrimPrefix(hub, "http://"), "$HUB", strings.TrimPrefix(limited.URL, "http://"), "$LIMITED"),
	}
}

// closedAddress returns an address on which no server listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// varying matches numbers that differ between runs.
var varying = regexp.MustCompile(`process \d+|\b\d+(\.\d+)?m?s\b`)

func (p *mistakePlace) run(t *testing.T, m mistake) mistake {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/mistakes")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-c", prelude+m.command)
	cmd.Dir = dir
	// Use a separate temporary folder: in a shared one, mini would find and report the
	// leftovers of other tests' processes.
	cmd.Env = append(p.env, "TMPDIR="+t.TempDir(), "HOME="+dir+"/home", "XDG_CACHE_HOME="+dir+"/home/cache", "XDG_STATE_HOME="+dir+"/home/state")
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		m.exit = exit.ExitCode()
	} else {
		m.exit = 0
	}
	if left, err := filepath.Glob(filepath.Join(dir, "mini-runs", "*")); err != nil || len(left) > 0 {
		t.Errorf("a run was left behind: %v, %v", left, err)
	}
	m.output = varying.ReplaceAllString(strings.ReplaceAll(p.hide.Replace(out.String()), dir, "$DIR"), "N")
	return m
}
