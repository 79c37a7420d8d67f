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

// start brings up a sandbox that ends with the test and leaves nothing behind.
func start(t *testing.T, e *docker.Engine, c docker.Config) *docker.Container {
	t.Helper()
	box, err := e.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return box
}

// run executes a script that must be carried out.
func run(t *testing.T, box env.Environment, script string) env.Result {
	t.Helper()
	res, err := box.Execute(t.Context(), env.Command{Script: script, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatalf("execute %q: %v", script, err)
	}
	return res
}

// output is what a script prints that must succeed.
func output(t *testing.T, box env.Environment, script string) string {
	t.Helper()
	res := run(t, box, script)
	if res.ExitCode != 0 {
		t.Fatalf("execute %q: exit code %d, %s%s", script, res.ExitCode, res.Output, res.Failure)
	}
	return string(res.Output)
}

// status is the status of an *env.Error, or empty.
func status(err error) env.Status {
	if e, ok := errors.AsType[*env.Error](err); ok {
		return e.Status
	}
	return ""
}

// within waits for something to become true.
func within(t *testing.T, d time.Duration, what string, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("after %s still not: %s", d, what)
		}
	}
}

func gone(t *testing.T, name string) bool {
	t.Helper()
	_, err := dockertest.Client(t).ContainerInspect(context.WithoutCancel(t.Context()), name)
	return errdefs.IsNotFound(err)
}

func TestCloseRemovesContainer(t *testing.T) {
	box := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t)})
	run(t, box, "sleep 1000 &")
	for range 2 {
		if err := box.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !gone(t, box.Name()) {
		t.Error("the container is still there after Close")
	}
	if _, err := box.Execute(t.Context(), env.Command{Script: "true"}); !errors.Is(err, env.ErrClosed) {
		t.Errorf("Execute after Close: %v, want env.ErrClosed", err)
	}
}

func TestCloseInMidCommand(t *testing.T) {
	box := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t)})
	var g errgroup.Group
	g.Go(func() error {
		_, err := box.Execute(t.Context(), env.Command{Script: "touch /tmp/on; sleep 1000", Timeout: time.Hour})
		if !errors.Is(err, env.ErrClosed) {
			return fmt.Errorf("interrupted command: %w, want env.ErrClosed", err)
		}
		return nil
	})
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestInfo(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	box := start(t, e, docker.Config{Image: image, Dir: "/usr/lib", Instance: "a__b-1", Run: "r"})
	i := box.Info()
	if i.System != "Linux" || i.Dir != "/usr/lib" || i.Network || i.Image != image || len(i.ImageID) != len("sha256:")+64 {
		t.Errorf("Info = %+v", i)
	}
	c, err := dockertest.Client(t).ContainerInspect(t.Context(), box.Name())
	if err != nil {
		t.Fatal(err)
	}
	if l := c.Config.Labels; l["mini.instance"] != "a__b-1" || l["mini.run"] != "r" || l["mini.owner"] == "" || l["mini.expires"] == "" {
		t.Errorf("labels = %v", l)
	}
	if h := c.HostConfig; h.Memory != docker.DefaultMemory || h.MemorySwap != h.Memory || *h.PidsLimit != docker.DefaultPIDs || h.LogConfig.Type != "none" {
		t.Errorf("host config = %+v", h)
	}
}

func TestManyStartsAtOnce(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	var g errgroup.Group
	for i := range 16 {
		g.Go(func() error {
			box, err := e.Start(t.Context(), docker.Config{Image: image})
			if err != nil {
				return err
			}
			res, err := box.Execute(t.Context(), env.Command{Script: fmt.Sprintf("echo %d", i)})
			if want := fmt.Sprintf("%d\n", i); err == nil && string(res.Output) != want {
				err = fmt.Errorf("output %q, want %q", res.Output, want)
			}
			return errors.Join(err, box.Close(t.Context()))
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestStartEndsWithContext(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	// Deadlines spread over the length of a start catch it at every stage.
	for wait := time.Millisecond; wait < 400*time.Millisecond; wait = wait * 3 / 2 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), wait, errStop)
		box, err := e.Start(ctx, docker.Config{Image: image, Instance: t.Name()})
		cancel()
		switch {
		case err == nil:
			err = box.Close(t.Context())
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
