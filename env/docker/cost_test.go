package docker_test

import (
	"runtime"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// TestOutputMemory: output beyond the limit is discarded in the sandbox and needs no
// memory here.
func TestOutputMemory(t *testing.T) {
	sandbox := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res := run(t, sandbox, "head -c 60M /dev/zero")
	runtime.ReadMemStats(&after)
	if res.Bytes != 60<<20 || len(res.Output) != env.DefaultOutputLimit || !res.Truncated {
		t.Errorf("%d bytes of %d kept, truncated %v", len(res.Output), res.Bytes, res.Truncated)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4<<20 {
		t.Errorf("the command allocated %d bytes here, of which %d are output", allocated, len(res.Output))
	}
}
