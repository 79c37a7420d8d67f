package docker_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

func TestDescribe(t *testing.T) {
	e, cli := dockertest.Engine(t), dockertest.Client(t)
	d, err := e.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info, err := cli.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	left := leftover(t, map[string]string{"mini.owner": c.Config.Labels["mini.owner"]})
	for _, dead := range []bool{false, true} {
		if dead {
			p.kill()
		}
		found, err := e.ListLeftovers(t.Context(), docker.CleanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(found, func(l docker.Leftover) bool { return l.Name == left }) != dead {
			t.Errorf("owner dead %v: leftovers are %v", dead, found)
		}
		if isRemoved(t, left) {
			t.Error("the container was removed")
		}
	}
}
