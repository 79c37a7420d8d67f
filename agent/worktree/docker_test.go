package worktree_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// Root in a container, with a repository of another user and packed future
// commits, as in official images.
func TestContainer(t *testing.T) {
	image := dockertest.Image(t)
	sb, err := dockertest.Engine(t).Start(t.Context(), docker.Config{Image: image, Dir: "/tmp"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sb.Close(context.WithoutCancel(t.Context()))) })
	in := func(script string) string {
		t.Helper()
		res, err := sb.Execute(t.Context(), env.Command{
			Script: "set -e; export HOME=/root GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n" + script,
		})
		if err != nil || res.ExitCode != 0 {
			t.Fatalf("%v, exit code %d: %s%s", err, res.ExitCode, res.Output, res.Failure)
		}
		return string(res.Output)
	}
	in(story + "git remote add origin https://example.org/x; git gc -q; chown -R 1234:1234 /tmp; chmod 755 /tmp")
	report, err := worktree.Scrub(t.Context(), disposable{sb})
	if err != nil || !report.IsClean() || report.Method != "repacked" || report.Commits != 2 {
		t.Fatalf("%v, %+v", err, report)
	}
	assert.Equal(t, "1234\n", in("find /tmp/.git -printf '%u\\n' | sort -u"), "owners in .git")
	tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
	if err != nil || tree.Base == "" {
		t.Fatalf("%v, %+v", err, tree)
	}
	in("echo more >> one.txt; head -c 100 /dev/zero > new.bin")
	diff, err := tree.Diff(t.Context())
	if err != nil || !diff.Exact || !strings.Contains(string(diff.Patch), "+more") || !strings.Contains(string(diff.Patch), "GIT binary patch") {
		t.Errorf("%v, %+v", err, diff)
	}
	if found, err := tree.Check(t.Context(), diff.Patch); err != nil || found.Tree != diff.Tree {
		t.Errorf("%v, %+v", err, found)
	}
	in("rm -rf .git; git init -q .")
	again, err := tree.Diff(t.Context())
	if err != nil || !again.Exact || string(again.Patch) != string(diff.Patch) {
		t.Errorf("after the agent made another repository: %v, %+v", err, again)
	}
}

// Without room for a pack or for temporary files, the error says how much is needed, and
// where.
func TestFullDisks(t *testing.T) {
	image := dockertest.Image(t)
	for name, tt := range map[string]struct {
		tmpfs map[string]int64
		shm   int64
		want  string
		opens bool
	}{
		"for a pack":      {map[string]int64{"/small": 3 << 20}, 0, "no room for a pack of up to ", false},
		"for a temporary": {map[string]int64{"/small": 20 << 20, "/tmp": 1 << 20, "/var/tmp": 1 << 20}, 1 << 20, "no room for a temporary folder of ", true},
	} {
		t.Run(name, func(t *testing.T) {
			sb, err := dockertest.Engine(t).Start(t.Context(), docker.Config{Image: image, Dir: "/small", Tmpfs: tt.tmpfs, ShmBytes: tt.shm})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, sb.Close(context.WithoutCancel(t.Context()))) })
			res, err := sb.Execute(t.Context(), env.Command{Script: "set -e; export HOME=/root GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n" +
				story + "git checkout -q future; head -c 700000 /dev/urandom > r; git add r; git commit -qm r; git checkout -q main; git gc -q; head -c 1800000 /dev/zero > filler"})
			if err != nil || res.ExitCode != 0 {
				t.Fatalf("%v, %+v: %s", err, res, res.Output)
			}
			if tt.opens {
				_, err = worktree.Open(t.Context(), sb, worktree.Config{})
			} else {
				_, err = worktree.Scrub(t.Context(), disposable{sb})
			}
			if !errors.Is(err, worktree.ErrNoSpace) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
