package docker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/envtest"
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sandbox.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
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
	if res.ExitCode != 0 {
		t.Fatalf("execute %q: exit code %d, %s%s", script, res.ExitCode, res.Output, res.Failure)
	}
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
		if err := sandbox.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !isRemoved(t, sandbox.Name()) {
		t.Error("the container is still there after Close")
	}
	if _, err := sandbox.Execute(t.Context(), env.Command{Script: "true"}); !errors.Is(err, env.ErrClosed) {
		t.Errorf("Execute after Close: %v, want env.ErrClosed", err)
	}
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
	if err := sandbox.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestInfo(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	sandbox := start(t, e, docker.Config{Image: image, Dir: "/usr/lib", Instance: "a__b-1", Run: "r"})
	i := sandbox.Info()
	if i.System != "Linux" || i.Dir != "/usr/lib" || i.Network || i.Image != image || len(i.ImageID) != len("sha256:")+64 {
		t.Errorf("Info = %+v", i)
	}
	c, err := dockertest.Client(t).ContainerInspect(t.Context(), sandbox.Name())
	if err != nil {
		t.Fatal(err)
	}
	if l := c.Config.Labels; l["mini.instance"] != "a__b-1" || l["mini.run"] != "r" || l["mini.owner"] == "" || l["mini.expires"] == "" {
		t.Errorf("labels = %v", l)
	}
	if h := c.HostConfig; h.Memory != docker.DefaultMemoryBytes || h.MemorySwap != h.Memory || *h.PidsLimit != docker.DefaultPIDs || h.LogConfig.Type != "none" {
		t.Errorf("host config = %+v", h)
	}
}

func TestConcurrentStarts(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	var g errgroup.Group
	for i := range 6 {
		g.Go(func() error {
			sandbox, err := e.Start(t.Context(), docker.Config{Image: image})
			if err != nil {
				return err
			}
			res, err := sandbox.Execute(t.Context(), env.Command{Script: fmt.Sprintf("echo %d", i)})
			if want := fmt.Sprintf("%d\n", i); err == nil && string(res.Output) != want {
				err = fmt.Errorf("output %q, want %q", res.Output, want)
			}
			return errors.Join(err, sandbox.Close(t.Context()))
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
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
	if names := containers(t, t.Name()); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

var errStop = errors.New("stopped by the test")
