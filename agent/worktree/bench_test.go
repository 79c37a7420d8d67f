package worktree_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// BenchmarkAttempt measures what an attempt adds to the commands of its agent in a prepared image of
// a repository of twenty files: processes, threads and time before the first call of a model, which
// is the check of the scrub and the state at the start, and after the submission, which is the diff.
func BenchmarkAttempt(b *testing.B) {
	engine := preparingEngine(b)
	var before, after, beforeTime, afterTime []float64
	for i := range 8 * b.N {
		sandbox := startPrepared(b, engine, "mini-demo-ledger:latest", true)
		var tree *worktree.Tree
		processes, seconds := cost(b, sandbox, func() (err error) {
			if _, err := worktree.Scrub(b.Context(), sandbox); err != nil {
				return err
			}
			tree, err = worktree.Open(b.Context(), sandbox, worktree.Config{})
			return err
		})
		inSandbox(b, sandbox, "echo changed >> README.md")
		processesAfter, secondsAfter := cost(b, sandbox, func() error {
			_, err := tree.Diff(b.Context())
			return err
		})
		end(b, sandbox)
		if i == 0 { // it prepares the image
			continue
		}
		before, beforeTime = append(before, processes), append(beforeTime, seconds*1e3)
		after, afterTime = append(after, processesAfter), append(afterTime, secondsAfter*1e3)
	}
	b.ReportMetric(median(before), "processes-before")
	b.ReportMetric(median(beforeTime), "ms-before")
	b.ReportMetric(median(after), "processes-after")
	b.ReportMetric(median(afterTime), "ms-after")
	b.ReportMetric(0, "ns/op")
}

// cost returns the processes and threads that work starts in a sandbox, and its seconds.
func cost(b *testing.B, sandbox env.Environment, work func() error) (processes, seconds float64) {
	b.Helper()
	last := func() int { // the number of the last process or thread
		n, err := strconv.Atoi(inSandbox(b, sandbox, "read -r _ _ _ _ last </proc/loadavg && echo $last"))
		require.NoError(b, err)
		return n
	}
	first, second := last(), last()
	start := time.Now()
	require.NoError(b, work())
	seconds = time.Since(start).Seconds()
	return float64(last() - second - (second - first)), seconds // last starts some, too
}

// BenchmarkScrub measures the scrub of a large repository in addition to the start of a container: at
// the first attempt on an image, at later ones, and at those on an image whose history is clean.
func BenchmarkScrub(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "repository")
	if out, err := exec.CommandContext(b.Context(), "../../scripts/big-repository.sh", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	engine := preparingEngine(b)
	dirty := keepImage(b, engine, docker.Config{Image: dockertest.Image(b), Mounts: []docker.Mount{{Source: dir, Target: "/given"}}}, func(sandbox env.Environment) {
		inSandbox(b, sandbox, "cp -a /given /testbed")
	})
	clean := keepImage(b, engine, docker.Config{Image: dirty, Dir: "/testbed"}, func(sandbox env.Environment) {
		_, err := worktree.Scrub(b.Context(), sandbox)
		require.NoError(b, err)
	})
	start := func(image string, prepared bool) float64 {
		begin := time.Now()
		sandbox := startPrepared(b, engine, image, prepared)
		if prepared {
			if report, err := worktree.Scrub(b.Context(), sandbox); err != nil || !report.IsClean() || !report.Prepared {
				b.Fatalf("the scrub is not proven: %v, %+v", err, report)
			}
		}
		seconds := time.Since(begin).Seconds()
		end(b, sandbox)
		return seconds
	}
	var plain []float64
	for range 5 {
		plain = append(plain, start(dirty, false))
	}
	for name, image := range map[string]string{"given": dirty, "clean": clean} {
		b.Run(name, func(b *testing.B) {
			first := start(image, true)
			var later []float64
			for range 5 * b.N {
				later = append(later, start(image, true))
			}
			b.ReportMetric(median(plain), "s-start")
			b.ReportMetric(first-median(plain), "s-first")
			b.ReportMetric(median(later)-median(plain), "s-later")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// benchmarkRun is the label of the images that benchmarks make and remove.
const benchmarkRun = "mini-benchmark"

// preparingEngine returns an engine with an image store of its own, which is removed at the end.
func preparingEngine(b *testing.B) *docker.Engine {
	b.Helper()
	engine := dockertest.EngineWith(b, docker.EngineConfig{Images: &imagestore.Config{Dir: b.TempDir()}})
	b.Cleanup(func() {
		ctx := context.WithoutCancel(b.Context())
		_, err := engine.Images().Prune(ctx, nil, false)
		assert.NoError(b, err)
		_, err = engine.Clean(ctx, docker.CleanOptions{IncludeKept: true, Run: benchmarkRun})
		assert.NoError(b, err)
	})
	return engine
}

// startPrepared starts a container, of a prepared image if prepared is set.
func startPrepared(b *testing.B, engine *docker.Engine, image string, prepared bool) *docker.Container {
	b.Helper()
	c := docker.Config{Image: image, Dir: "/testbed", MemoryBytes: -1}
	if prepared {
		c.Prepare = &docker.Preparation{Key: worktree.PreparationKey(), Do: worktree.Prepare}
	}
	sandbox, err := engine.Start(b.Context(), c)
	require.NoError(b, err)
	return sandbox
}

// keepImage returns an image of a container in which change was called.
func keepImage(b *testing.B, engine *docker.Engine, c docker.Config, change func(env.Environment)) string {
	b.Helper()
	c.Run, c.Instance, c.MemoryBytes = benchmarkRun, "benchmark", -1
	sandbox, err := engine.Start(b.Context(), c)
	require.NoError(b, err)
	defer end(b, sandbox)
	change(sandbox)
	image, err := sandbox.Keep(b.Context(), "1")
	require.NoError(b, err)
	return image
}

func end(b *testing.B, sandbox *docker.Container) {
	b.Helper()
	assert.NoError(b, sandbox.Close(b.Context()))
}

// inSandbox runs a script that must succeed and returns its output.
func inSandbox(b *testing.B, sandbox env.Environment, script string) string {
	b.Helper()
	res, err := sandbox.Execute(b.Context(), env.Command{Script: script, Timeout: 10 * time.Minute})
	if err != nil || res.ExitCode != 0 {
		b.Fatalf("%s: %v, exit code %d: %s", script, err, res.ExitCode, res.Output)
	}
	return strings.TrimSpace(string(res.Output))
}

func median(figures []float64) float64 {
	return slices.Sorted(slices.Values(figures))[len(figures)/2]
}
