package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// buildImage builds an image from the small image and Dockerfile instructions, and
// removes it after the test.
func buildImage(t *testing.T, name string, instructions ...string) string {
	t.Helper()
	cli, base := dockertest.Client(t), dockertest.Small(t)
	ctr, err := cli.ContainerCreate(t.Context(), &container.Config{Image: base, Cmd: []string{"true"}}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	ref := "mini-test-" + name
	_, err = cli.ContainerCommit(t.Context(), ctr.ID, container.CommitOptions{Reference: ref, Changes: instructions})
	if rmErr := cli.ContainerRemove(t.Context(), ctr.ID, container.RemoveOptions{}); rmErr != nil {
		t.Error(rmErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	removeImageOnCleanup(t, ref)
	return ref
}

func removeImageOnCleanup(t *testing.T, ref string) {
	t.Helper()
	t.Cleanup(func() {
		_, err := dockertest.Client(t).ImageRemove(context.WithoutCancel(t.Context()), ref, image.RemoveOptions{Force: true})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestImageSettings: the settings of an image hold, except those that start programs.
func TestImageSettings(t *testing.T) {
	t.Parallel()
	e, cli := dockertest.Engine(t), dockertest.Client(t)
	ref := buildImage(t, "settings", `ENTRYPOINT ["/bin/false"]`, `CMD ["x"]`, "USER 1234", "WORKDIR /tmp",
		`HEALTHCHECK --interval=1s CMD ["bash", "-c", "echo >/tmp/probed"]`, "VOLUME /data", "ENV A=image", "ENV B=image")
	sandbox := start(t, e, docker.Config{Image: ref, Dir: "/testbed", Env: map[string]string{"B": "mine"}})
	if got := output(t, sandbox, "pwd; test -e /testbed && echo made; echo $UID $A $B; test -d /data && echo there"); got != "/tmp\n1234 image mine\nthere\n" {
		t.Errorf("commands print %q", got)
	}
	i := sandbox.Info()
	if want := "the image has no /testbed; commands start in /tmp"; i.Dir != "/tmp" || len(i.Warnings) != 1 || i.Warnings[0] != want {
		t.Errorf("dir %q, warnings %q; want %q", i.Dir, i.Warnings, want)
	}
	c, err := cli.ContainerInspect(t.Context(), sandbox.Name())
	if err != nil {
		t.Fatal(err)
	}
	if c.State.Health != nil {
		t.Errorf("the health check of the image runs: %+v", c.State.Health)
	}
	if err := sandbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	anonymous := 0
	for _, m := range c.Mounts {
		if m.Destination != "/data" {
			continue
		}
		anonymous++
		if _, err := cli.VolumeInspect(t.Context(), m.Name); err == nil {
			t.Errorf("volume %s is left behind", m.Name)
		}
	}
	if anonymous != 1 {
		t.Fatalf("the container had %d anonymous volumes, want 1: %+v", anonymous, c.Mounts)
	}
}

// tarball returns a tar file with empty files.
func tarball(t *testing.T, files ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestImageWithoutShell(t *testing.T) {
	e, cli := dockertest.Engine(t), dockertest.Client(t)
	const ref = "mini-test-empty"
	body, err := cli.ImageImport(t.Context(), image.ImportSource{Source: bytes.NewReader(tarball(t)), SourceName: "-"}, ref, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Fatal(err)
	}
	if err := body.Close(); err != nil {
		t.Fatal(err)
	}
	removeImageOnCleanup(t, ref)

	sandbox := start(t, e, docker.Config{Image: ref})
	for range 2 {
		res := run(t, sandbox, "true")
		if res.Failure == "" || res.ExitCode != -1 {
			t.Errorf("result = %+v, want a Failure", res)
		}
	}
	if w := sandbox.Info().Warnings; len(w) != 1 || !strings.Contains(w[0], "no other shell") {
		t.Errorf("warnings = %q", w)
	}
}
