package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/registrytest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// buildImage builds an image from the small image and Dockerfile instructions, and
// removes it after the test.
func buildImage(t *testing.T, name string, instructions ...string) string {
	t.Helper()
	cli, base := dockertest.Client(t), dockertest.Small(t)
	ctr, err := cli.ContainerCreate(t.Context(), &container.Config{Image: base, Cmd: []string{"true"}}, nil, nil, nil, "")
	require.NoError(t, err)
	ref := "mini-test-" + name
	_, err = cli.ContainerCommit(t.Context(), ctr.ID, container.CommitOptions{Reference: ref, Changes: instructions})
	if rmErr := cli.ContainerRemove(t.Context(), ctr.ID, container.RemoveOptions{}); rmErr != nil {
		t.Error(rmErr)
	}
	require.NoError(t, err)
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
	require.NoError(t, err)
	if c.State.Health != nil {
		t.Errorf("the health check of the image runs: %+v", c.State.Health)
	}
	require.NoError(t, sandbox.Close(t.Context()))
	anonymous := 0
	for _, m := range c.Mounts {
		if m.Destination != "/data" {
			continue
		}
		anonymous++
		_, err := cli.VolumeInspect(t.Context(), m.Name)
		assert.Error(t, err, "volume %s is left behind", m.Name)
	}
	require.Equal(t, 1, anonymous, "anonymous volumes: %+v", c.Mounts)
}

// tarball returns a tar file with empty files.
func tarball(t *testing.T, files ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f, Mode: 0o644}))
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

func TestImageWithoutShell(t *testing.T) {
	e, cli := dockertest.Engine(t), dockertest.Client(t)
	const ref = "mini-test-empty"
	body, err := cli.ImageImport(t.Context(), image.ImportSource{Source: bytes.NewReader(tarball(t)), SourceName: "-"}, ref, image.ImportOptions{})
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, body)
	require.NoError(t, err)
	require.NoError(t, body.Close())
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

func TestMissingImageIsPulledOnce(t *testing.T) {
	r := registrytest.Start(t)
	var mu sync.Mutex
	var last docker.PullProgress
	finished := 0
	e := dockertest.EngineWith(t, docker.EngineConfig{PullProgress: func(p docker.PullProgress) {
		mu.Lock()
		defer mu.Unlock()
		last = p
		if p.Done {
			finished++
		}
	}})
	ref := r.Push(t, "mini-test/pulled", registrytest.Image(t, "", registrytest.Layer(t, 1<<10)))
	removeImageOnCleanup(t, ref)
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			sandbox, err := e.Start(t.Context(), docker.Config{Image: ref})
			if err != nil {
				return err
			}
			if i := sandbox.Info(); !strings.Contains(i.ImageDigest, "mini-test/pulled@sha256:") {
				return fmt.Errorf("digest is %q", i.ImageDigest)
			}
			return sandbox.Close(t.Context())
		})
	}
	require.NoError(t, g.Wait())
	if finished != 1 || last.Image != ref || last.Failed || last.Layers != 1 || last.LayersDone != 1 || last.Bytes != last.Total {
		t.Errorf("%d pulls, at the end %+v; want one, complete", finished, last)
	}
}

func TestPullFails(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	faults := map[string]registrytest.Fault{
		"broken": {Status: http.StatusBadGateway}, "limited": {Status: http.StatusTooManyRequests},
	}
	r.Inject(func(q *http.Request) *registrytest.Fault {
		if parts := strings.Split(q.URL.Path, "/"); len(parts) > 3 {
			if f, ok := faults[parts[3]]; ok {
				return &f
			}
		}
		return nil
	})
	for name, want := range map[string]env.Status{
		r.Host + "/mini-test/missing": env.ImageNotFound,
		r.Host + "/mini-test/broken":  env.PullFailed,
		r.Host + "/mini-test/limited": env.PullFailed,
		"Not An Image":                env.ImageNotFound,
		"127.0.0.1:1/nobody/there":    env.PullFailed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last docker.PullProgress
			e := dockertest.EngineWith(t, docker.EngineConfig{
				PullTimeout: time.Minute, PullProgress: func(p docker.PullProgress) { last = p },
			})
			_, err := e.Start(t.Context(), docker.Config{Image: name})
			if last.Done && !last.Failed {
				t.Errorf("the progress reports success: %+v", last)
			}
			assert.Equal(t, want, status(err), "err = %v", err)
			t.Log(err)
		})
	}
}
