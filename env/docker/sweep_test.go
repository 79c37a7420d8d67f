package docker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// process is another program that has a container of its own, in mid-command.
type process struct {
	cmd       *exec.Cmd
	stdin     io.Closer
	container string
}

func spawn(t *testing.T, c docker.Config) *process {
	t.Helper()
	config, err := json.Marshal(childConfig{HelperDir: dockertest.HelperDir(t), Config: c})
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

// kill is kill -9; a second one does nothing.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // "signal: killed"
	_ = p.stdin.Close()
}

func TestContainerEndsWithItsOwner(t *testing.T) {
	dockertest.Client(t)
	p := spawn(t, docker.Config{Image: dockertest.Image(t)})
	p.kill()
	within(t, 2*time.Second, "container gone after kill -9 of its owner", func() bool { return gone(t, p.container) })
}

func TestSweep(t *testing.T) {
	e, cli, image := dockertest.Engine(t), dockertest.Client(t), dockertest.Image(t)
	p := spawn(t, docker.Config{Image: image})
	c, err := cli.ContainerInspect(t.Context(), p.container)
	if err != nil {
		t.Fatal(err)
	}
	label := c.Config.Labels["mini.owner"]
	other := func(field string, value any) string {
		var o map[string]any
		if err := json.Unmarshal([]byte(label), &o); err != nil {
			t.Fatal(err)
		}
		o[field] = value
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	later, earlier := time.Now().Add(time.Hour).Format(time.RFC3339), time.Now().Add(-time.Hour).Format(time.RFC3339)
	keep := map[string]string{
		"living owner":             leftover(t, map[string]string{"mini.owner": label, "mini.expires": earlier}),
		"other host":               leftover(t, map[string]string{"mini.owner": other("host", "0123456789abcdef"), "mini.expires": earlier}),
		"other namespace, young":   leftover(t, map[string]string{"mini.owner": other("space", "pid:[1]"), "mini.expires": later}),
		"label that means nothing": leftover(t, map[string]string{"mini.owner": "me", "mini.expires": earlier}),
		"no label":                 leftover(t, nil),
	}
	sweep := map[string]string{
		"process id used again":    leftover(t, map[string]string{"mini.owner": other("start", "1"), "mini.expires": later}),
		"other boot":               leftover(t, map[string]string{"mini.owner": other("boot", "x"), "mini.expires": later}),
		"no such process":          leftover(t, map[string]string{"mini.owner": other("pid", 1<<30), "mini.expires": later}),
		"other namespace, expired": leftover(t, map[string]string{"mini.owner": other("space", "pid:[1]"), "mini.expires": earlier}),
	}
	removed, err := e.Sweep(t.Context())
	if err != nil {
		t.Error(err)
	}
	for why, name := range keep {
		if gone(t, name) || slices.Contains(removed, name) {
			t.Errorf("%s: swept", why)
		}
	}
	for why, name := range sweep {
		if !gone(t, name) || !slices.Contains(removed, name) {
			t.Errorf("%s: not swept", why)
		}
	}
	if gone(t, p.container) {
		t.Error("the running container of a living owner was swept")
	}
	p.kill()
	removed, err = e.Sweep(t.Context())
	if err != nil {
		t.Error(err)
	}
	if !slices.Contains(removed, keep["living owner"]) {
		t.Errorf("once its owner is dead: not swept; removed were %v", removed)
	}
}

// leftover is a container that was created and never started.
func leftover(t *testing.T, labels map[string]string) string {
	t.Helper()
	cli := dockertest.Client(t)
	made, err := cli.ContainerCreate(t.Context(), &container.Config{Image: dockertest.Image(t), Cmd: []string{"true"}, Labels: maps.Clone(labels)}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cli.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, container.RemoveOptions{Force: true}) // the test may have done so
	})
	c, err := cli.ContainerInspect(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(c.Name, "/")
}
