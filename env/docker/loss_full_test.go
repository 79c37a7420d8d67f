//go:build full && linux

package docker_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// TestEngineLoss tests how the sandbox is lost with an engine of its own, which the
// tests fill, freeze and kill one after another.
func TestEngineLoss(t *testing.T) {
	t.Parallel()
	d := dockertest.StartDaemonWithDisk(t, 64<<20)
	for _, tt := range []struct {
		name string
		run  func(*testing.T, *dockertest.Daemon, *docker.Engine)
	}{
		{"disk full", diskFull},
		{"socket removed", socketRemoved},
		{"frozen start", frozenStart},
		{"engine ends", engineEnds},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, d, d.Engine(docker.EngineConfig{})) })
	}
}

// open starts a sandbox in the engine of a test. It ignores the error of Close.
func open(t *testing.T, e *docker.Engine, c docker.Config) *docker.Container {
	t.Helper()
	c.Image = dockertest.SmallImage
	sandbox, err := e.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = sandbox.Close(context.WithoutCancel(t.Context())) }) // the engine may be gone
	return sandbox
}

// diskFull: the disk of the engine is full.
func diskFull(t *testing.T, _ *dockertest.Daemon, e *docker.Engine) {
	sandbox := open(t, e, docker.Config{})
	// A full tmpfs of the container is no error.
	res := run(t, sandbox, "head -c 1G /dev/zero > /dev/shm/full")
	if res.ExitCode == 0 || !strings.Contains(string(res.Output), "No space left") {
		t.Errorf("full /dev/shm: %+v", res)
	}
	_, err := sandbox.Execute(t.Context(), env.Command{Script: "head -c 1G /dev/zero > /full"})
	lost, ok := errors.AsType[*env.Error](err)
	if !ok || lost.Status != env.HostDiskFull || lost.Hint == "" {
		t.Fatalf("err = %v, want HostDiskFull", err)
	}
	// The sandbox stays usable, so that the agent's work can be read.
	assert.Equal(t, "still here\n", output(t, sandbox, "echo still here"))
	if _, err := e.Start(t.Context(), docker.Config{Image: dockertest.SmallImage}); status(err) != env.HostDiskFull {
		t.Errorf("a start on a full disk: %v, want HostDiskFull", err)
	}
	assert.NoError(t, sandbox.Close(t.Context()))
	// The file that filled the disk was removed with its container.
	assert.NoError(t, open(t, e, docker.Config{}).Close(t.Context()))
}

// engineEnds: the engine ends, or does not answer, while a command runs.
func engineEnds(t *testing.T, d *dockertest.Daemon, e *docker.Engine) {
	for name, end := range map[string]func(*dockertest.Daemon){
		"killed":    (*dockertest.Daemon).Kill,
		"stopped":   (*dockertest.Daemon).Stop,
		"frozen":    (*dockertest.Daemon).Freeze,
		"restarted": func(d *dockertest.Daemon) { d.Stop(); d.Start() },
		"killed and started again": func(d *dockertest.Daemon) {
			d.Kill()
			d.Start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := open(t, e, docker.Config{})
			running := startSleep(t, sandbox)
			ended := make(chan struct{})
			go func() { // a restart may take longer than the loss of the sandbox
				defer close(ended)
				end(d)
			}()
			lost := waitLoss(t, running)
			<-ended
			want := []env.Status{env.DaemonUnavailable}
			if name == "stopped" || name == "restarted" { // on a busy machine, the engine still answers after it has killed the container
				want = append(want, env.ContainerDied)
			}
			if !slices.Contains(want, lost.Status) {
				t.Errorf("%v, want %v", lost, want)
			}
			// Later commands fail with the same status: the sandbox is lost.
			if _, err := sandbox.Execute(t.Context(), env.Command{Script: "true"}); status(err) != lost.Status {
				t.Errorf("the next command: %v", err)
			}
			_ = sandbox.Close(t.Context()) // the container cannot be removed without its engine
			switch name {
			case "frozen":
				d.Thaw()
			case "killed", "stopped":
				d.Start()
			}
			// The engine runs again, and removes the containers of the lost sandbox.
			next := open(t, e, docker.Config{})
			assert.Equal(t, "back\n", output(t, next, "echo back"), "after the engine is back")
			assert.NoError(t, next.Close(t.Context()))
			waitFor(t, time.Minute, "no container is left in any state", func() bool { return len(allContainers(t, d)) == 0 })
		})
	}
}

// allContainers returns the names and states of all containers of an engine. It skips
// dead containers without a name: an engine that was killed may list a container that it
// has removed.
func allContainers(t *testing.T, d *dockertest.Daemon) []string {
	t.Helper()
	c := d.Client()
	defer c.Close()
	list, err := c.ContainerList(context.WithoutCancel(t.Context()), container.ListOptions{All: true})
	require.NoError(t, err)
	var names []string
	for _, l := range list {
		if len(l.Names) == 0 && l.State == container.StateDead {
			continue
		}
		names = append(names, strings.Join(l.Names, ",")+" "+l.State)
	}
	return names
}

// frozenStart: Start also returns if the engine does not answer.
func frozenStart(t *testing.T, d *dockertest.Daemon, e *docker.Engine) {
	open(t, e, docker.Config{}) // creates the helper volume
	d.Freeze()
	c := make(chan error, 1)
	go func() {
		_, err := e.Start(context.WithoutCancel(t.Context()), docker.Config{Image: dockertest.SmallImage})
		c <- err
	}()
	assert.Equal(t, env.DaemonUnavailable, waitLoss(t, c).Status)
	d.Thaw()
}

// socketRemoved: open connections work after the engine's socket was renamed.
func socketRemoved(t *testing.T, d *dockertest.Daemon, e *docker.Engine) {
	sandbox := open(t, e, docker.Config{})
	require.NoError(t, os.Rename(d.Socket(), d.Socket()+"-away"))
	// The command takes longer than heartbeatTimeout, but the engine is not silent.
	assert.Equal(t, "on\n", output(t, sandbox, "sleep 6; echo on"), "a command without the socket")
	fresh, err := docker.Open(t.Context(), docker.EngineConfig{Host: d.Host()})
	assert.Equal(t, env.DaemonUnavailable, status(err), "%v, %v; want DaemonUnavailable", fresh, err)
	require.NoError(t, os.Rename(d.Socket()+"-away", d.Socket()))
	assert.NoError(t, sandbox.Close(t.Context()))
}
