package docker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// process is a child process that runs a command in its own container.
type process struct {
	cmd       *exec.Cmd
	stdin     io.Closer
	container string
}

func spawn(t *testing.T, c docker.Config) *process {
	t.Helper()
	return spawnAt(t, "", c)
}

// spawnAt is spawn with the engine at host.
func spawnAt(t *testing.T, host string, c docker.Config) *process {
	t.Helper()
	config, err := json.Marshal(childConfig{Host: host, HelperDir: dockertest.HelperDir(t), Config: c})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+string(config))
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{cmd: cmd, stdin: stdin}
	t.Cleanup(p.kill)
	name, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("child said %q: %v", name, err)
	}
	p.container = strings.TrimSpace(name)
	return p
}

// kill kills the process with SIGKILL. A second call has no effect.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // "signal: killed"
	_ = p.stdin.Close()
}

func TestContainerEndsWithItsOwner(t *testing.T) {
	dockertest.Client(t)
	p := spawn(t, docker.Config{Image: dockertest.Image(t)})
	p.kill()
	waitFor(t, time.Minute, "exit after kill -9 of the owner", func() bool { return isRemoved(t, p.container) })
}

// leftover creates a container without starting it, and returns its name.
func leftover(t *testing.T, labels map[string]string) string {
	t.Helper()
	cli := dockertest.Client(t)
	created, err := cli.ContainerCreate(t.Context(), &container.Config{Image: dockertest.Small(t), Cmd: []string{"true"}, Labels: maps.Clone(labels)}, nil, nil, nil, "")
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cli.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, container.RemoveOptions{Force: true}) // the test may have done so
	})
	c, err := cli.ContainerInspect(t.Context(), created.ID)
	require.NoError(t, err)
	return strings.TrimPrefix(c.Name, "/")
}

func TestDescribe(t *testing.T) {
	e, cli := dockertest.Engine(t), dockertest.Client(t)
	d, err := e.Describe(t.Context())
	require.NoError(t, err)
	info, err := cli.Info(t.Context())
	require.NoError(t, err)
	if d.Version != info.ServerVersion || d.API != cli.ClientVersion() || d.CPUs != info.NCPU || d.Memory != info.MemTotal ||
		d.RootDir != info.DockerRootDir || d.Host != cli.DaemonHost() {
		t.Errorf("%+v", d)
	}
	if strings.HasPrefix(d.Host, "unix://") && d.Arch != runtime.GOARCH {
		t.Errorf("architecture %s", d.Arch)
	}
}

// TestListLeftovers: ListLeftovers lists the container of a dead owner, and removes
// nothing.
func TestListLeftovers(t *testing.T) {
	e := dockertest.Engine(t)
	p := spawn(t, docker.Config{Image: dockertest.Image(t)})
	c, err := dockertest.Client(t).ContainerInspect(t.Context(), p.container)
	require.NoError(t, err)
	left := leftover(t, map[string]string{"mini.owner": c.Config.Labels["mini.owner"]})
	for _, dead := range []bool{false, true} {
		if dead {
			p.kill()
		}
		found, err := e.ListLeftovers(t.Context(), docker.CleanOptions{})
		require.NoError(t, err)
		assert.Equal(t, dead, slices.ContainsFunc(found, func(l docker.Leftover) bool { return l.Name == left }), "owner dead: leftovers are %v", found)
		if isRemoved(t, left) {
			t.Error("the container was removed")
		}
	}
}
