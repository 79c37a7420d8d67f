package docker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestConformance(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	envtest.Run(t, func(t *testing.T) env.Environment {
		return start(t, e, docker.Config{Image: image})
	}, envtest.WithMemory(func(t *testing.T) env.Environment {
		return start(t, e, docker.Config{Image: image, MemoryBytes: 96 << 20, ShmBytes: 16 << 20})
	}))
}

// start starts a sandbox and closes it after the test.
func start(t *testing.T, e *docker.Engine, c docker.Config) *docker.Container {
	t.Helper()
	sandbox, err := e.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sandbox.Close(context.WithoutCancel(t.Context()))) })
	return sandbox
}

// run executes a script. It fails the test if Execute returns an error.
func run(t *testing.T, sandbox env.Environment, script string) env.Result {
	t.Helper()
	res, err := sandbox.Execute(t.Context(), env.Command{Script: script, Timeout: 2 * time.Minute})
	if err != nil {
		t.Fatalf("execute %q: %v", script, err)
	}
	return res
}

// output returns the output of a script, which must succeed.
func output(t *testing.T, sandbox env.Environment, script string) string {
	t.Helper()
	res := run(t, sandbox, script)
	require.Equal(t, 0, res.ExitCode, "execute %q: exit code, %s%s", script, res.Output, res.Failure)
	return string(res.Output)
}

// status returns the status of an *env.Error, or "".
func status(err error) env.Status {
	if e, ok := errors.AsType[*env.Error](err); ok {
		return e.Status
	}
	return ""
}

// waitFor polls until ok returns true. It fails the test after d.
func waitFor(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("timeout after %s: %s", d, what)
		}
	}
}

func isRemoved(t *testing.T, name string) bool {
	t.Helper()
	_, err := dockertest.Client(t).ContainerInspect(context.WithoutCancel(t.Context()), name)
	return errdefs.IsNotFound(err)
}

func TestCloseRemovesContainer(t *testing.T) {
	sandbox := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t)})
	run(t, sandbox, "sleep 1000 &")
	for range 2 {
		require.NoError(t, sandbox.Close(t.Context()))
	}
	if !isRemoved(t, sandbox.Name()) {
		t.Error("the container is still there after Close")
	}
	_, err := sandbox.Execute(t.Context(), env.Command{Script: "true"})
	assert.ErrorIs(t, err, env.ErrClosed, "Execute after Close")
}

func TestCloseInMidCommand(t *testing.T) {
	sandbox := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t)})
	var g errgroup.Group
	g.Go(func() error {
		_, err := sandbox.Execute(t.Context(), env.Command{Script: "touch /tmp/on; sleep 1000", Timeout: time.Hour})
		if !errors.Is(err, env.ErrClosed) {
			return fmt.Errorf("interrupted command: %w, want env.ErrClosed", err)
		}
		return nil
	})
	assert.NoError(t, sandbox.Close(t.Context()))
	assert.NoError(t, g.Wait())
}

func TestInfo(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	sandbox := start(t, e, docker.Config{Image: image, Dir: "/usr/lib", Instance: "a__b-1", Run: "r"})
	i := sandbox.Info()
	if i.System != "Linux" || i.Dir != "/usr/lib" || i.Network || i.Image != image || len(i.ImageID) != len("sha256:")+64 {
		t.Errorf("Info = %+v", i)
	}
	c, err := dockertest.Client(t).ContainerInspect(t.Context(), sandbox.Name())
	require.NoError(t, err)
	if l := c.Config.Labels; l["mini.instance"] != "a__b-1" || l["mini.run"] != "r" || l["mini.owner"] == "" || l["mini.expires"] == "" {
		t.Errorf("labels = %v", l)
	}
	if h := c.HostConfig; h.Memory != docker.DefaultMemoryBytes || h.MemorySwap != h.Memory || *h.PidsLimit != docker.DefaultPIDs || h.LogConfig.Type != "none" {
		t.Errorf("host config = %+v", h)
	}
}

func TestStartCancelled(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	// The deadlines are spread over the duration of a start, to cancel it at every
	// stage.
	for wait := time.Millisecond; wait < 400*time.Millisecond; wait *= 2 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), wait, errStop)
		sandbox, err := e.Start(ctx, docker.Config{Image: image, Instance: t.Name()})
		cancel()
		switch {
		case err == nil:
			err = sandbox.Close(t.Context())
		case errors.Is(err, errStop):
			err = nil
		}
		if err != nil {
			t.Errorf("after %s: %v", wait, err)
		}
	}
	assert.Equal(t, "", strings.Join(containers(t, t.Name()), " "), "left behind")
}

var errStop = errors.New("stopped by the test")

// TestOutputMemory: output beyond the limit is discarded in the sandbox and needs no
// memory here.
func TestOutputMemory(t *testing.T) {
	sandbox := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res := run(t, sandbox, "head -c 60M /dev/zero")
	runtime.ReadMemStats(&after)
	if res.Bytes != 60<<20 || len(res.Output) != env.DefaultOutputLimit || !res.Truncated {
		t.Errorf("%d bytes of %d kept, truncated %v", len(res.Output), res.Bytes, res.Truncated)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4<<20 {
		t.Errorf("the command allocated %d bytes here, of which %d are output", allocated, len(res.Output))
	}
}

// containers returns the names of all containers of an instance, in any state.
func containers(t *testing.T, instance string) []string {
	t.Helper()
	list, err := dockertest.Client(t).ContainerList(context.WithoutCancel(t.Context()), container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", "mini.instance="+instance)),
	})
	require.NoError(t, err)
	var names []string
	for _, c := range list {
		names = append(names, c.Names...)
	}
	return names
}
