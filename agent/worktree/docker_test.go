package worktree_test

import (
	"context"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// Root in a container, with a repository of another user and packed future
// commits, as in official images.
func TestContainer(t *testing.T) {
	image := dockertest.Image(t)
	sb, err := dockertest.Engine(t).Start(t.Context(), docker.Config{Image: image, Dir: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
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
	if owners := in("find /tmp/.git -printf '%u\\n' | sort -u"); owners != "1234\n" {
		t.Errorf("owners in .git: %q", owners)
	}
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
}
