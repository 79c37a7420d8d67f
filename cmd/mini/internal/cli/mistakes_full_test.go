//go:build full

package cli_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakesInShell runs every command of testdata/full/mistakes.golden in bash.
func TestMistakesInShell(t *testing.T) {
	t.Parallel()
	checkMistakes(t, "testdata/full/mistakes.golden", newMistakePlace(t).runInShell)
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
  unshare $map -m true 2>/dev/null || { echo "SKIP: this machine does not allow mounts" >&2; exit 0; }
  unshare $map -m bash -c 'mount -t tmpfs -o size=64k tmpfs full && "$@"' - "$@"
}
plain_user() { # COMMAND...: permissions hold, also for root
  ((EUID)) && { "$@"; return; }
  command -v setpriv >/dev/null || { echo "SKIP: root, without setpriv" >&2; exit 0; }
  setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search "$@"
}
`

// binFolder returns a folder that contains mini.
func binFolder(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "mini")); err != nil {
		t.Fatal(err)
	}
	return bin
}

func (p *mistakePlace) runInShell(t *testing.T, m mistake) mistake {
	t.Helper()
	dir, env := p.files(t)
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-c", prelude+m.command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(env, "PATH="+binFolder(t)+":"+os.Getenv("PATH")), &out, &out
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok && exit.ExitCode() < 0 {
		t.Fatalf("%v: %s", err, out.String())
	}
	if reason, skipped := skipReason(out.String()); skipped {
		t.Skip(reason)
	}
	return p.result(t, m, dir, cmd.ProcessState.ExitCode(), out.String())
}
