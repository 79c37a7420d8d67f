//go:build linux && kubernetes

package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/kubernetes"
)

func init() { parts = append(parts, part{"kubernetes", (*bench).kubernetes}) }

// podCount is the number of pods that are started at once.
const podCount = 50

// starter starts a sandbox.
type starter func(ctx context.Context) (env.Environment, error)

// kubernetes compares pods of the cluster of KUBECONFIG with containers of the engine.
// The cluster needs the image; on a cluster that does not enforce network policies, the
// proof of the network fails, which takes as long.
func (b *bench) kubernetes(ctx context.Context) (err error) {
	b.title("containers of the engine beside pods of the cluster, in turns")
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	cluster, err := kubernetes.Open(ctx, kubernetes.Settings{CPURequest: resource.MustParse("10m")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	pod := func(network string) starter {
		return func(ctx context.Context) (env.Environment, error) {
			return cluster.Start(ctx, kubernetes.Config{Image: b.image, Network: network})
		}
	}
	sandboxes := []struct {
		name  string
		start starter
	}{
		{"container", func(ctx context.Context) (env.Environment, error) {
			return engine.Start(ctx, docker.Config{Image: b.image})
		}},
		{"pod", pod("bridge")},
		{"pod, network none with probe", pod(kubernetes.NetworkNone)},
	}
	starts := make([][]float64, len(sandboxes))
	for range 10 {
		for i, s := range sandboxes {
			ms, err := timed(1, func() error { return firstResult(ctx, s.start) })
			if err != nil {
				return err
			}
			starts[i] = append(starts[i], ms...)
		}
	}
	for i, s := range sandboxes {
		b.row(s.name+": create to first result", median(starts[i]), "ms", fmt.Sprintf("at most %.0f", slices.Max(starts[i])))
	}
	for _, s := range sandboxes[:2] {
		if err := b.compareOne(ctx, s.name, s.start); err != nil {
			return err
		}
	}
	return b.manyPods(ctx, pod("bridge"))
}

// firstResult starts a sandbox, runs a command and closes it without waiting for the
// removal of a pod.
func firstResult(ctx context.Context, start starter) error {
	sandbox, err := start(ctx)
	if err != nil {
		return err
	}
	_, err = sandbox.Execute(ctx, env.Command{Script: "true"})
	return errors.Join(err, sandbox.Close(ctx))
}

// compareOne measures commands and transfers in one sandbox.
func (b *bench) compareOne(ctx context.Context, name string, start starter) (err error) {
	sandbox, err := start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sandbox.Close(ctx)) }()
	ms, err := timed(500, func() error {
		_, err := sandbox.Execute(ctx, env.Command{Script: "true"})
		return err
	})
	if err != nil {
		return err
	}
	b.row(name+": bash -c true", median(ms), "ms", fmt.Sprintf("p99 %.2f", percentile(ms, 99)))
	files, ok := env.AsFiles(sandbox)
	if !ok {
		return errors.New("the sandbox has no files")
	}
	begin := time.Now()
	if err := files.Put(ctx, "/tmp/bench", largeFile()); err != nil {
		return err
	}
	b.row(name+": Put of 1 GB", largeBytes/1e6/time.Since(begin).Seconds(), "MB/s")
	begin = time.Now()
	if err := files.Get(ctx, "/tmp/bench/file", io.Discard); err != nil {
		return err
	}
	b.row(name+": Get of 1 GB", largeBytes/1e6/time.Since(begin).Seconds(), "MB/s")
	return nil
}

const largeBytes = 1_000_000_000

// largeFile returns a tar stream with one file of largeBytes.
func largeFile() io.Reader {
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := t.WriteHeader(&tar.Header{Name: "file", Mode: 0o600, Size: largeBytes})
		block := make([]byte, 1<<20)
		for left := largeBytes; left > 0 && err == nil; left -= len(block) {
			block = block[:min(left, len(block))]
			_, err = t.Write(block)
		}
		w.CloseWithError(errors.Join(err, t.Close()))
	}()
	return r
}

func percentile(figures []float64, p int) float64 {
	s := slices.Sorted(slices.Values(figures))
	return s[min(len(s)*p/100, len(s)-1)]
}

// manyPods starts many pods at once and runs a command in each.
func (b *bench) manyPods(ctx context.Context, start starter) error {
	begin := time.Now()
	var group errgroup.Group
	ready := make(chan float64, podCount)
	release := make(chan struct{})
	for range podCount {
		group.Go(func() error {
			sandbox, err := start(ctx)
			if err != nil {
				return err
			}
			_, err = sandbox.Execute(ctx, env.Command{Script: "true"})
			ready <- time.Since(begin).Seconds()
			if len(ready) == podCount {
				close(release)
			}
			select {
			case <-release:
			case <-ctx.Done():
			}
			return errors.Join(err, sandbox.Close(ctx))
		})
	}
	err := group.Wait()
	close(ready)
	last := 0.0
	for s := range ready {
		last = max(last, s)
	}
	b.row(fmt.Sprintf("%d pods at once: all have a result after", podCount), last, "s")
	return err
}
