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

// In a container, as root over a repository of another user's, with the future
// packed: what official images look like.
func TestInAContainer(t *testing.T) {
	image := dockertest.Image(t)
	box, err := dockertest.Engine(t).Start(t.Context(), docker.Config{Image: image, Dir: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	in := func(script string) string {
		t.Helper()
		res, err := box.Execute(t.Context(), env.Command{
			Script: "set -e; export HOME=/root GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n" + script,
		})
		if err != nil || res.ExitCode != 0 {
			t.Fatalf("%v, exit code %d: %s%s", err, res.ExitCode, res.Output, res.Failure)
		}
		return string(res.Output)
	}
	in(story + "git remote add origin https://example.org/x; git gc -q; chown -R 1234:1234 /tmp; chmod 755 /tmp")
	proof, err := worktree.Scrub(t.Context(), disposable{box})
	if err != nil || !proof.Holds() || proof.Method != "repacked" || proof.Commits != 2 {
		t.Fatalf("%v, %+v", err, proof)
	}
	if owners := in("find /tmp/.git -printf '%u\\n' | sort -u"); owners != "1234\n" {
		t.Errorf("owners in .git: %q", owners)
	}
	tree, err := worktree.Open(t.Context(), box, worktree.Config{})
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
