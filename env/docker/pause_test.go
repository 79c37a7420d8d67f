package docker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// startSleep starts a command that does not end by itself. The channel receives the
// error of Execute.
func startSleep(t *testing.T, sandbox *docker.Container) <-chan error {
	t.Helper()
	if _, err := sandbox.Execute(t.Context(), env.Command{Script: "true"}); err != nil {
		t.Fatal(err)
	}
	c := make(chan error, 1)
	go func() {
		_, err := sandbox.Execute(context.WithoutCancel(t.Context()), env.Command{Script: "sleep 600", Timeout: time.Hour})
		c <- err
	}()
	return c
}

// waitLoss returns the error from a channel of startSleep. It fails the test if
// no error arrives.
func waitLoss(t *testing.T, c <-chan error) *env.Error {
	t.Helper()
	select {
	case err := <-c:
		e, ok := errors.AsType[*env.Error](err)
		if !ok {
			t.Fatalf("err = %v, want the loss of the sandbox", err)
		}
		if strings.Contains(e.Error(), "\n") || e.Hint == "" {
			t.Errorf("%q, hint %q: want one line, and a hint", e, e.Hint)
		}
		return e
	case <-time.After(2 * time.Minute):
		t.Fatal("Execute does not return")
		return nil
	}
}

func TestPauseWithinLimit(t *testing.T) {
	t.Parallel()
	c := dockertest.Client(t)
	sandbox := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t)})
	if err := c.ContainerPause(t.Context(), sandbox.Name()); err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	var res env.Result
	g.Go(func() (err error) {
		res, err = sandbox.Execute(t.Context(), env.Command{Script: "echo on", Timeout: time.Minute})
		return err
	})
	waitFor(t, time.Minute, "mini has noticed the pause", func() bool { return docker.WasPausedRecently(sandbox) })
	if err := c.ContainerUnpause(t.Context(), sandbox.Name()); err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err != nil || string(res.Output) != "on\n" {
		t.Errorf("%q, %v", res.Output, err)
	}
}

func TestPauseExceedsLimit(t *testing.T) {
	t.Parallel()
	c := dockertest.Client(t)
	sandbox := start(t, dockertest.EngineWith(t, docker.EngineConfig{PauseLimit: time.Second}), docker.Config{Image: dockertest.Image(t)})
	running := startSleep(t, sandbox)
	if err := c.ContainerPause(t.Context(), sandbox.Name()); err != nil {
		t.Fatal(err)
	}
	if lost := waitLoss(t, running); lost.Status != env.ContainerPaused || !strings.Contains(lost.Error(), "paused") {
		t.Errorf("%v, want ContainerPaused", lost)
	}
	if err := sandbox.Close(t.Context()); err != nil || !isRemoved(t, sandbox.Name()) {
		t.Errorf("close: %v, and the container is removed: %v", err, isRemoved(t, sandbox.Name()))
	}
}
