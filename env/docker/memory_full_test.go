//go:build full

package docker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/assert"
)

// TestTmpfsFillsMemory: files in a tmpfs count as memory that cannot be reclaimed. If
// they fill the memory, the sandbox is lost.
func TestTmpfsFillsMemory(t *testing.T) {
	t.Parallel()
	e := dockertest.Engine(t)
	fill := env.Command{Script: "head -c 100M /dev/zero > /dev/shm/f", Timeout: time.Minute}
	sandbox := start(t, e, docker.Config{Image: dockertest.Image(t), MemoryBytes: 32 << 20, ShmBytes: 31 << 20})
	var err error
	commands := 0
	for ; commands < 20 && err == nil; commands++ { // the first shells may find memory
		_, err = sandbox.Execute(t.Context(), fill)
	}
	if lost, ok := errors.AsType[*env.Error](err); !ok || lost.Status != env.ContainerDied || !strings.Contains(lost.Error(), "memory") || lost.Hint == "" {
		t.Errorf("after %d commands: %v, want ContainerDied for want of memory", commands, err)
	}
	// If only the command's own process uses too much memory, the sandbox stays usable.
	sandbox = start(t, e, docker.Config{Image: dockertest.Image(t), MemoryBytes: 32 << 20})
	if res := run(t, sandbox, "x=$(head -c 100M /dev/zero | tr '\\0' x)"); res.OOMKilled == 0 || res.ExitCode == 0 {
		t.Errorf("%+v, want a command that was killed for want of memory", res)
	}
	assert.Equal(t, "on\n", output(t, sandbox, "echo on"), "the next command")
}
