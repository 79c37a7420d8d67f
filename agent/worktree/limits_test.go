package worktree_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env/local"
)

// A git that does not end is killed, and each try leaves time for the ones with smaller
// limits.
func TestGitDoesNotEnd(t *testing.T) {
	t.Parallel()
	bin, tmp, dir := t.TempDir(), t.TempDir(), repository(t, seed, "")
	sh(t, bin, "printf '#!/bin/sh\ntest ! -e %s/hang || { echo x >>%s/tries; exec sleep 1000; }\nexec %s \"$@\"\n' "+bin+" "+bin+" $(command -v git) > git; chmod +x git")
	sb := sandbox(t, local.Config{Dir: dir, Env: map[string]string{"PATH": bin + ":" + os.Getenv("PATH"), "TMPDIR": tmp}})
	tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sh(t, bin, "touch hang")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := tree.Diff(ctx); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("the error is %v", err)
	}
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
	if err := <-hashed; err == nil {
		t.Error("there is a hash")
	}
	if left := sh(t, tmp, "ls -A"); left != "" {
		t.Errorf("left behind: %s", left)
	}
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
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
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
