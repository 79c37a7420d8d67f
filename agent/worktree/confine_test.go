package worktree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
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
	require.NoError(t, err)
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
		require.NoError(t, err)
		sh(t, own, "echo mine >> one.txt")
		if d, err := tree.Diff(t.Context()); err != nil || !d.Exact || !strings.Contains(string(d.Patch), "+mine") {
			t.Errorf("the diff is %q, %v", d.Patch, err)
		}
	}
	assert.Equal(t, "", sh(t, own, secrets), "the future is still")
	if after := sh(t, user, snapshot); after != before {
		t.Errorf("the other repository was changed:\n%s", cmp.Diff(before, after))
	}
}

// A git that does not end is killed, and each try leaves time for the ones with smaller
// limits.
func TestGitDoesNotEnd(t *testing.T) {
	t.Parallel()
	bin, tmp, dir := t.TempDir(), t.TempDir(), repository(t, seed, "")
	sh(t, bin, "printf '#!/bin/sh\ntest ! -e %s/hang || { echo x >>%s/tries; exec sleep 1000; }\nexec %s \"$@\"\n' "+bin+" "+bin+" $(command -v git) > git; chmod +x git")
	sb := sandbox(t, local.Config{Dir: dir, Env: map[string]string{"PATH": bin + ":" + os.Getenv("PATH"), "TMPDIR": tmp}})
	tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
	require.NoError(t, err)
	sh(t, bin, "touch hang")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = tree.Diff(ctx)
	assert.ErrorContains(t, err, "in time")
	if tries := sh(t, bin, "cat tries"); strings.Count(tries, "x") < 2 {
		t.Errorf("%q tries", tries)
	}
	// A hash that is cancelled leaves no temporary files.
	ctx, cancel = context.WithCancel(t.Context())
	sh(t, bin, "rm tries")
	hashed := make(chan error)
	go func() {
		_, err := tree.Hash(ctx)
		hashed <- err
	}()
	sh(t, bin, "until test -e tries; do sleep 0.01; done; ls "+tmp+" | grep -q mini-tmp")
	cancel()
	assert.Error(t, <-hashed, "there is a hash")
	assert.Equal(t, "", sh(t, tmp, "ls -A"), "left behind")
}

// A pipe where git expects a file of its own does not stop the work, and the error names
// it.
func TestPipes(t *testing.T) {
	for name, tt := range map[string]struct{ change, want string }{
		"ignore rules":        {"mkfifo sub/.gitignore", "sub/.gitignore is a pipe"},
		"attributes":          {"mkfifo sub/.gitattributes; echo x > sub/new", "sub/.gitattributes is a pipe"},
		"excluded files":      {"mkfifo pipe; git config core.excludesFile $PWD/pipe; git config core.attributesFile pipe", ""},
		"the repository's":    {"rm -f .git/info/exclude; mkfifo .git/info/exclude .git/info/attributes", ""},
		"a pipe among others": {"mkfifo pipe", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t, seed, tt.change)
			tree, err := worktree.Open(t.Context(), sandbox(t, local.Config{Dir: dir}), worktree.Config{})
			if tt.want != "" {
				assert.ErrorContains(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			sh(t, dir, "echo x >> a.txt")
			if d, err := tree.Diff(t.Context()); err != nil || !strings.Contains(string(d.Patch), "+x") {
				t.Errorf("%v, %+v", err, d)
			}
		})
	}
}

// The program needs git and no other program of the sandbox, not even a shell. Lines that
// the loader of programs writes to standard error are not taken for data.
func TestOnlyGit(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), t.TempDir()
	sh(t, bin, `ln -s "$(command -v git)" git`)
	sh(t, dir, story+seed)
	sb := disposable{sandbox(t, local.Config{Dir: dir, Env: map[string]string{"PATH": bin, "LD_PRELOAD": "/nonexistent/x.so"}})}
	if report, err := worktree.Scrub(t.Context(), sb); err != nil || !report.IsClean() || report.ObjectsRemoved == 0 {
		t.Fatalf("%v, %+v", err, report)
	}
	tree, err := worktree.Open(t.Context(), sb, worktree.Config{MaxPatch: 100_000, Exclude: []string{"*.pyc"}})
	if err != nil || tree.Base == "" {
		t.Fatalf("%v, %+v", err, tree)
	}
	sh(t, dir, `echo "it's" >> a.txt; rm code.py; mkdir new venv; printf 'n\xe9w' > 'new/sp ace'; echo x > x.pyc; for i in 1 2 3 4 5 6 7 8 9; do head -c 60000 /dev/urandom > venv/$i; done; git init -q nested`)
	diff, err := tree.Diff(t.Context())
	if err != nil || !diff.Exact || diff.OmittedCount != 2 {
		t.Fatalf("%v, %+v", err, diff)
	}
	checkPatch(t, diff.Patch, []string{"+it's", "deleted file", "sp ace"}, []string{"venv", "nested"})
	for _, patch := range []string{string(diff.Patch), strings.TrimSuffix(string(diff.Patch), "\n")} {
		if found, err := tree.Check(t.Context(), []byte(patch)); err != nil || found.GitError != "" || found.Tree != diff.Tree {
			t.Errorf("%v, %q, tree %s instead of %s", err, found.GitError, found.Tree, diff.Tree)
		}
	}
}
