package docker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
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
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+string(config))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cli.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, container.RemoveOptions{Force: true}) // the test may have done so
	})
	c, err := cli.ContainerInspect(t.Context(), created.ID)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(c.Name, "/")
}
