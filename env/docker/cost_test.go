package docker_test

import (
	"runtime"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// What a command floods its output with stays in the sandbox.
func TestMemoryOfAFlood(t *testing.T) {
	box := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res := run(t, box, "head -c 200M /dev/zero")
	runtime.ReadMemStats(&after)
	if res.Bytes != 200<<20 || len(res.Output) != env.DefaultOutputLimit || !res.Truncated {
		t.Errorf("%d bytes of %d kept, truncated %v", len(res.Output), res.Bytes, res.Truncated)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("the command cost %d bytes of memory here, of which %d were kept", took, len(res.Output))
	}
}
