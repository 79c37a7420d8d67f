//go:build full

package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env/local"
)

// The scripts run in any POSIX shell with its usual tools.
func TestShells(t *testing.T) {
	shells := map[string]string{"dash": "dash", "bash": "bash", "busybox": "busybox"}
	for name, program := range shells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(program)
			if err != nil {
				t.Skipf("there is no %s on this machine", program)
			}
			bin := t.TempDir()
			if name == "busybox" {
				// Only busybox and git.
				sh(t, bin, `busybox --install -s . && ln -sf "$(command -v git)" git`)
			} else if err := os.Symlink(path, filepath.Join(bin, "sh")); err != nil {
				t.Fatal(err)
			}
			search := bin + ":" + os.Getenv("PATH")
			if name == "busybox" {
				search = bin
			}
			dir := t.TempDir()
			sh(t, dir, story+seed)
			sb := disposable{sandbox(t, local.Config{Dir: dir, Env: map[string]string{"PATH": search}})}
			if report, err := worktree.Scrub(t.Context(), sb); err != nil || !report.IsClean() || report.ObjectsRemoved == 0 {
				t.Fatalf("%v, %+v", err, report)
			}
			tree, err := worktree.Open(t.Context(), sb, worktree.Config{MaxPatch: 100_000, Exclude: []string{"*.pyc"}})
			if err != nil || tree.Base == "" {
				t.Fatalf("%v, %+v", err, tree)
			}
			sh(t, dir, `echo "it's" >> a.txt; rm code.py; mkdir new venv; printf 'n\xe9w' > 'new/sp ace'; echo x > x.pyc; for i in 1 2 3 4 5 6 7 8 9; do head -c 60000 /dev/urandom > venv/$i; done; git init -q nested`)
			diff, err := tree.Diff(t.Context())
			if err != nil || !diff.Exact || diff.OmittedCount != 2 || diff.Omitted[0].Name != "venv/" || diff.Omitted[1].Name != "nested/" {
				t.Fatalf("%v, %+v", err, diff)
			}
			for _, want := range []string{"+it's", "deleted file", "sp ace"} {
				if !strings.Contains(string(diff.Patch), want) {
					t.Errorf("no %q in\n%s", want, diff.Patch)
				}
			}
			for _, patch := range []string{string(diff.Patch), strings.TrimSuffix(string(diff.Patch), "\n")} {
				if found, err := tree.Check(t.Context(), []byte(patch)); err != nil || found.GitError != "" || found.Tree != diff.Tree {
					t.Errorf("%v, %q, tree %s instead of %s", err, found.GitError, found.Tree, diff.Tree)
				}
			}
			if found, err := tree.Check(t.Context(), []byte("no patch\n")); err != nil || found.GitError == "" {
				t.Errorf("%v, %+v", err, found)
			}
		})
	}
}
