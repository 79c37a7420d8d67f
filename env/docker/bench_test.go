package docker_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/require"
)

// BenchmarkToolCall compares commands that call a tool, which answers at once, with those that do
// not. They take turns in one container.
func BenchmarkToolCall(b *testing.B) {
	sandbox := startForBenchmark(b, dockertest.Engine(b))
	defer closeAfterBenchmark(b, sandbox)
	tools := &env.Tools{Handle: func(context.Context, env.ToolRequest) env.ToolResponse {
		return env.ToolResponse{Stdout: []byte("pong\n")}
	}}
	for _, flag := range []string{"-c", "-lc"} {
		b.Run("bash"+flag, func(b *testing.B) {
			var plain, allowed, calling []time.Duration
			shell := []string{"bash", flag}
			for range 160 * b.N {
				plain = append(plain, timeOf(b, sandbox, env.Command{Script: "true", Interpreter: shell}, ""))
				allowed = append(allowed, timeOf(b, sandbox, env.Command{Script: "true", Interpreter: shell, Tools: tools}, ""))
				calling = append(calling, timeOf(b, sandbox, env.Command{Script: "mini-tool ping", Interpreter: shell, Tools: tools}, "pong\n"))
			}
			b.ReportMetric(medianMS(plain), "ms-plain")
			b.ReportMetric(medianMS(allowed)-medianMS(plain), "ms-tools-allowed")
			b.ReportMetric(medianMS(calling)-medianMS(plain), "ms-tool-call")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLifecycle starts and removes one container after another.
func BenchmarkLifecycle(b *testing.B) {
	engine := dockertest.Engine(b)
	var starts, first, removals []time.Duration
	for range 15 * b.N {
		start := time.Now()
		sandbox := startForBenchmark(b, engine)
		starts = append(starts, time.Since(start))
		first = append(first, timeOf(b, sandbox, env.Command{Script: "true"}, ""))
		start = time.Now()
		closeAfterBenchmark(b, sandbox)
		removals = append(removals, time.Since(start))
	}
	b.ReportMetric(medianMS(starts), "ms-start")
	b.ReportMetric(medianMS(first), "ms-first-command")
	b.ReportMetric(medianMS(removals), "ms-removal")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMany holds 300 containers at once.
func BenchmarkMany(b *testing.B) {
	const count = 300
	engine := dockertest.Engine(b)
	for b.Loop() {
		sandboxes := make([]*docker.Container, count)
		start := time.Now()
		var starting errgroup.Group
		starting.SetLimit(2 * runtime.NumCPU())
		for i := range sandboxes {
			starting.Go(func() (err error) {
				sandboxes[i], err = engine.Start(b.Context(), docker.Config{Image: dockertest.BaseImage})
				return err
			})
		}
		err := starting.Wait()
		b.ReportMetric(count/time.Since(start).Seconds(), "starts/s")
		start = time.Now()
		for _, sandbox := range sandboxes {
			if err == nil {
				_, err = sandbox.Execute(b.Context(), env.Command{Script: "true"})
			}
		}
		b.ReportMetric(count/time.Since(start).Seconds(), "commands/s")
		for _, sandbox := range sandboxes {
			if sandbox != nil {
				starting.Go(func() error { return sandbox.Close(b.Context()) })
			}
		}
		if closeErr := starting.Wait(); err != nil || closeErr != nil {
			b.Fatal(err, closeErr)
		}
	}
	b.ReportMetric(0, "ns/op")
}

func startForBenchmark(b *testing.B, engine *docker.Engine) *docker.Container {
	b.Helper()
	sandbox, err := engine.Start(b.Context(), docker.Config{Image: dockertest.Image(b), Env: map[string]string{"BASH_ENV": ""}})
	require.NoError(b, err)
	return sandbox
}

func closeAfterBenchmark(b *testing.B, sandbox *docker.Container) {
	b.Helper()
	require.NoError(b, sandbox.Close(b.Context()))
}

// timeOf returns the time of a command that prints output and succeeds.
func timeOf(b *testing.B, sandbox env.Environment, command env.Command, output string) time.Duration {
	b.Helper()
	start := time.Now()
	r, err := sandbox.Execute(b.Context(), command)
	if err != nil || r.ExitCode != 0 || string(r.Output) != output {
		b.Fatalf("%v, exit code %d, output %.200q, %s", err, r.ExitCode, r.Output, r.Failure)
	}
	return time.Since(start)
}

func medianMS(times []time.Duration) float64 {
	return slices.Sorted(slices.Values(times))[len(times)/2].Seconds() * 1e3
}
