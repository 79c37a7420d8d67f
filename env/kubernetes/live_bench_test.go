//go:build kubernetes && kubernetes_live

package kubernetes

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/require"
)

// BenchmarkLive compares containers of the engine with pods of the cluster of KUBECONFIG. On a
// cluster that does not enforce network policies the proof of the network fails, which takes as long.
func BenchmarkLive(b *testing.B) {
	engine, cluster := dockertest.Engine(b), live(b, nil)
	for name, start := range map[string]func(context.Context) (env.Environment, error){
		"container": func(ctx context.Context) (env.Environment, error) {
			return engine.Start(ctx, docker.Config{Image: liveImage()})
		},
		"pod": func(ctx context.Context) (env.Environment, error) {
			return cluster.Start(ctx, Config{Image: liveImage(), Network: networkBridge})
		},
		"pod-without-network": func(ctx context.Context) (env.Environment, error) {
			return cluster.Start(ctx, Config{Image: liveImage(), Network: NetworkNone})
		},
	} {
		b.Run(name, func(b *testing.B) { benchmarkLive(b, start) })
	}
}

func benchmarkLive(b *testing.B, start func(context.Context) (env.Environment, error)) {
	timed := func(do func() error) float64 {
		begin := time.Now()
		require.NoError(b, do())
		return time.Since(begin).Seconds()
	}
	var starts, commands []float64
	for range 10 * b.N {
		var sandbox env.Environment
		run := func() error {
			_, err := sandbox.Execute(b.Context(), env.Command{Script: "true"})
			return err
		}
		starts = append(starts, 1000*timed(func() (err error) {
			if sandbox, err = start(b.Context()); err != nil {
				return err
			}
			return run()
		}))
		for range 50 {
			commands = append(commands, 1000*timed(run))
		}
		require.NoError(b, sandbox.Close(b.Context()))
	}
	slices.Sort(starts)
	slices.Sort(commands)
	b.ReportMetric(starts[len(starts)/2], "ms-first-result")
	b.ReportMetric(starts[len(starts)-1], "ms-slowest-first-result")
	b.ReportMetric(commands[len(commands)/2], "ms-command")
	b.ReportMetric(commands[len(commands)*99/100], "ms-command-p99")
	sandbox, err := start(b.Context())
	require.NoError(b, err)
	files, ok := env.AsFiles(sandbox)
	if !ok {
		b.Fatal("the sandbox has no files")
	}
	const megabytes = 1000
	b.ReportMetric(megabytes/timed(func() error { return files.Put(b.Context(), "/tmp/bench", largeFile(megabytes)) }), "MB/s-put")
	b.ReportMetric(megabytes/timed(func() error { return files.Get(b.Context(), "/tmp/bench/file", io.Discard) }), "MB/s-get")
	b.ReportMetric(0, "ns/op")
	require.NoError(b, sandbox.Close(b.Context()))
}

// largeFile returns a tar stream with one file.
func largeFile(megabytes int) io.Reader {
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := t.WriteHeader(&tar.Header{Name: "file", Mode: 0o600, Size: int64(megabytes) * 1e6})
		for i := 0; i < megabytes && err == nil; i++ {
			_, err = t.Write(make([]byte, 1e6))
		}
		w.CloseWithError(errors.Join(err, t.Close()))
	}()
	return r
}
