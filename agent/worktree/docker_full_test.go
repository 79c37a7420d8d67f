//go:build full

package worktree_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// An image with uncommitted changes: the patch contains none of them, and
// applies in another container of the image. /tmp is full.
func TestImageWithChanges(t *testing.T) {
	ref := dockertest.Image(t)
	engine := dockertest.Engine(t)
	start := func(cfg docker.Config) (*docker.Container, func(script string) string) {
		t.Helper()
		sb, err := engine.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := sb.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		return sb, func(script string) string {
			t.Helper()
			res, err := sb.Execute(t.Context(), env.Command{
				Script: "set -e; export HOME=/root GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n" + script,
			})
			if err != nil || res.ExitCode != 0 {
				t.Fatalf("%v, exit code %d: %s%s", err, res.ExitCode, res.Output, res.Failure)
			}
			return string(res.Output)
		}
	}
	made, in := start(docker.Config{Image: ref, Dir: "/opt", Run: "dirty", Instance: "dirty"})
	in("mkdir repo; cd repo\n" + dirty)
	dirtied, err := made.Keep(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := dockertest.Client(t).ImageRemove(context.WithoutCancel(t.Context()), dirtied, image.RemoveOptions{}); err != nil {
			t.Error(err)
		}
	})

	sb, in := start(docker.Config{Image: dirtied, Dir: "/opt/repo", Tmpfs: map[string]int64{"/tmp": 1 << 20}})
	tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
	if err != nil || tree.Base == "" {
		t.Fatalf("%v, %+v", err, tree)
	}
	in("head -c 9000000 /dev/zero > /tmp/full || true")
	if diff, err := tree.Diff(t.Context()); err != nil || !diff.Exact || len(diff.Patch) > 0 || diff.OmittedCount > 0 {
		t.Errorf("without a change: %v, %+v", err, diff)
	}
	in("echo mine >> a.txt; rm staged.txt; echo mine > new; ls -A .git > /opt/git; git add -A . ':!nested'")
	diff, err := tree.Diff(t.Context())
	if err != nil || !diff.Exact || !strings.Contains(string(diff.Patch), " dirt\n+mine") {
		t.Fatalf("%v, %+v", err, diff)
	}
	in("ls -A .git | diff /opt/git -")
	if found, err := tree.Check(t.Context(), diff.Patch); err != nil || found.Tree != diff.Tree {
		t.Errorf("%v, %+v", err, found)
	}
	const files = "cd /opt/repo; git add -A . ':!nested'; git ls-files -s"
	want := in(files)
	fresh, in := start(docker.Config{Image: dirtied, Dir: "/opt/repo"})
	if err := fresh.Put(t.Context(), "/opt", tarOf(t, "p.diff", diff.Patch)); err != nil {
		t.Fatal(err)
	}
	in("git apply ../p.diff")
	if got := in(files); got != want {
		t.Errorf("in a fresh container:\n%s\nwant:\n%s", got, want)
	}
}

// tarOf returns a tar stream with one file.
func tarOf(t *testing.T, name string, data []byte) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatPAX}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}
