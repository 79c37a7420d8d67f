package docker_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

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

// BenchmarkCommand is one `true` in a running container.
func BenchmarkCommand(b *testing.B) {
	e, image := dockertest.Engine(b), dockertest.Image(b)
	box, err := e.Start(b.Context(), docker.Config{Image: image})
	if err != nil {
		b.Fatal(err)
	}
	defer box.Close(b.Context())
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := box.Execute(b.Context(), env.Command{Script: "true"}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1e3, "median-ms")
}

// BenchmarkContainer is a start, a first command and a close.
func BenchmarkContainer(b *testing.B) { lifeOf(b, docker.Config{}) }

// BenchmarkPrivateContainer is one whose helper is its own.
func BenchmarkPrivateContainer(b *testing.B) {
	lifeOf(b, docker.Config{CapAdd: []string{"SYS_ADMIN", "KILL"}, Force: true})
}

func lifeOf(b *testing.B, c docker.Config) {
	e := dockertest.Engine(b)
	c.Image = dockertest.Image(b)
	var starts, commands, closes []time.Duration
	for b.Loop() {
		t0 := time.Now()
		box, err := e.Start(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		if _, err := box.Execute(b.Context(), env.Command{Script: "true"}); err != nil {
			b.Fatal(err)
		}
		t2 := time.Now()
		if err := box.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		starts, commands, closes = append(starts, t1.Sub(t0)), append(commands, t2.Sub(t1)), append(closes, time.Since(t2))
	}
	for unit, d := range map[string][]time.Duration{"start-ms": starts, "first-command-ms": commands, "close-ms": closes} {
		slices.Sort(d)
		b.ReportMetric(d[len(d)/2].Seconds()*1e3, unit)
	}
}
