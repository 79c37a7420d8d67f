package docker_test

import (
	"context"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/minibench/mini/env/docker/dockertest"
)

// containers returns the names of all containers of an instance, in any state.
func containers(t *testing.T, instance string) []string {
	t.Helper()
	list, err := dockertest.Client(t).ContainerList(context.WithoutCancel(t.Context()), container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", "mini.instance="+instance)),
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list {
		names = append(names, c.Names...)
	}
	return names
}
