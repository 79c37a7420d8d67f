package worktree_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
)

// snapshot lists all files of a repository with their times.
const snapshot = "find .git | sort | xargs -d '\\n' ls -ld --time-style=full-iso; find .git -type f ! -name index | sort | xargs sha256sum"

// Links and settings that lead from the attempt's folder to the user's
// repository: it is not changed and not part of the diff.
func TestUsersRepositoryIsNotChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		make string // run in the user's repository; the attempt's folder is $PWD/tmp/own
		err  error  // of Scrub; nil means any error but ErrNoRepository
		own  bool   // the attempt's folder has a repository
	}{
		"around the folder":           {make: "true", err: worktree.ErrNoRepository},
		"a folder with a colon":       {make: "mkdir 'tmp/o:n'; mv tmp/own 'tmp/o:n/'; ln -s 'o:n/own' tmp/own", err: worktree.ErrNoRepository},
		"a linked work tree":          {make: "rmdir tmp/own; git worktree add -q tmp/own old", own: true},
		"a link to its git directory": {make: "ln -s $PWD/.git tmp/own/.git", own: true},
		"links in the git directory":  {make: "cd tmp/own; git init -q .; rm -rf .git/refs .git/objects; ln -s ../../../.git/refs ../../../.git/objects .git/", own: true},
		"its files":                   {make: "cd tmp/own; git init -q .; git config core.worktree ../../..", err: worktree.ErrNoRepository},
		"a common directory":          {make: "cd tmp/own; git init -q .; echo ../../../.git > .git/commondir", own: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := t.TempDir()
			sh(t, user, story+"mkdir -p tmp/own; "+tt.make)
			before := sh(t, user, snapshot)
			sb := disposable{sandbox(t, local.Config{Dir: filepath.Join(user, "tmp", "own")})}
			report, err := worktree.Scrub(t.Context(), sb)
			if err == nil || errors.Is(err, worktree.ErrNoRepository) != errors.Is(tt.err, worktree.ErrNoRepository) {
				t.Errorf("the error is %v, want %v; %+v", err, tt.err, report)
			}
			if after := sh(t, user, snapshot); after != before {
				t.Errorf("the user's repository was changed:\n%s", cmp.Diff(before, after))
			}
			if tt.own {
				return
			}
			tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
			if err != nil || tree.Base != "" || tree.Missing == "" {
				t.Errorf("a repository was opened: %+v, %v", tree, err)
			}
		})
	}
}

// In a subfolder of the user's repository the diff covers the whole repository,
// like git diff. In a folder made for the attempt it does not cover anything
// above.
func TestOpenBelowTheTop(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, seed)
	tree, err := worktree.Open(t.Context(), sandbox(t, local.Config{Dir: filepath.Join(dir, "sub")}), worktree.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "echo four >> a.txt")
	if d, err := tree.Diff(t.Context()); err != nil || !strings.Contains(string(d.Patch), "+four") {
		t.Errorf("the diff is %q, %v", d.Patch, err)
	}
	report, err := scrubContained(t, filepath.Join(dir, "sub"))
	if err != nil || !report.IsClean() || report.Objects != 9 {
		t.Errorf("in a container: %+v, %v", report, err)
	}
}

// If a git hook starts mini, git's variables lead to that repository. The
// program does not follow them, even if the commands do.
func TestGitVariablesAreIgnored(t *testing.T) {
	user, own := t.TempDir(), t.TempDir()
	sh(t, user, story)
	sh(t, own, story)
	before := sh(t, user, snapshot)
	vars := map[string]string{
		"GIT_DIR": filepath.Join(user, ".git"), "GIT_WORK_TREE": user, "GIT_COMMON_DIR": filepath.Join(user, ".git"),
		"GIT_INDEX_FILE": filepath.Join(user, ".git", "index"), "GIT_OBJECT_DIRECTORY": filepath.Join(user, ".git", "objects"),
		"GIT_PREFIX": "sub/", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.worktree", "GIT_CONFIG_VALUE_0": user,
	}
	for _, contained := range []bool{false, true} {
		var sb env.Environment
		sb = sandbox(t, local.Config{Dir: own, Env: vars})
		if contained {
			sb = container{sb}
		}
		sb = disposable{sb}
		report, err := worktree.Scrub(t.Context(), sb)
		if err != nil || !report.IsClean() {
			t.Errorf("%v, %+v", err, report)
		}
		tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
		if err != nil {
			t.Fatal(err)
		}
		sh(t, own, "echo mine >> one.txt")
		if d, err := tree.Diff(t.Context()); err != nil || !d.Exact || !strings.Contains(string(d.Patch), "+mine") {
			t.Errorf("the diff is %q, %v", d.Patch, err)
		}
	}
	if found := sh(t, own, secrets); found != "" {
		t.Errorf("the future is still there:\n%s", found)
	}
	if after := sh(t, user, snapshot); after != before {
		t.Errorf("the other repository was changed:\n%s", cmp.Diff(before, after))
	}
}
