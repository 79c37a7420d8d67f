//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
)

// Limits of starting and stopping sandboxes.
const (
	maxRemoval       = 100 // ms
	maxFloodOverhead = 0.5 // seconds in addition to the time of head itself
	maxFloodMemory   = 28  // MiB
	idleCount        = 300 // number of idle containers
)

// floodBytes is the size of the output that flood measures.
const floodBytes = 200_000_000

// lifecycle measures starts and removals of sandboxes, one at a time.
func (b *bench) lifecycle(ctx context.Context) (err error) {
	b.title("one sandbox after another; medians of 15")
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	var starts, firstCommands, removals []float64
	for range 15 {
		t0 := time.Now()
		sandbox, err := engine.Start(ctx, docker.Config{Image: b.image})
		if err != nil {
			return err
		}
		t1 := time.Now()
		_, execErr := sandbox.Execute(ctx, env.Command{Script: "true"})
		t2 := time.Now()
		if err := errors.Join(execErr, sandbox.Close(ctx)); err != nil {
			return err
		}
		starts = append(starts, milliseconds(t1.Sub(t0)))
		firstCommands = append(firstCommands, milliseconds(t2.Sub(t1)))
		removals = append(removals, milliseconds(time.Since(t2)))
	}
	b.row("create and start, until the helper responds", median(starts), "ms")
	b.row("the first command", median(firstCommands), "ms")
	b.atMost("removal", median(removals), maxRemoval, "ms")
	return nil
}

// flood measures a command with a very large output.
func (b *bench) flood(ctx context.Context) error {
	b.title("%d MB of output", floodBytes/1_000_000)
	var baseline, inStep, peakMemory []float64
	for range 3 {
		for _, variant := range []struct {
			command string
			seconds *[]float64
		}{
			{fmt.Sprintf("head -c %d /dev/zero | cat >/dev/null", floodBytes), &baseline},
			{fmt.Sprintf("head -c %d /dev/zero", floodBytes), &inStep},
		} {
			run, err := b.runBench(ctx, options{instances: 1, steps: 1, workers: 1, bashFlag: "-c", command: variant.command})
			if err != nil {
				return err
			}
			durations, err := run.durations()
			if err != nil {
				return err
			}
			*variant.seconds = append(*variant.seconds, durations[0])
			peakMemory = append(peakMemory, run.peakMemory)
		}
	}
	b.row("head alone, into a pipe", median(baseline), "s")
	b.row("step", median(inStep), "s")
	b.atMost("overhead of the step", median(inStep)-median(baseline), maxFloodOverhead, "s")
	b.atMost("peak resident memory of mini", median(peakMemory), maxFloodMemory, "MB")
	return nil
}

// idleContainers measures one process that holds many idle containers.
func (b *bench) idleContainers(ctx context.Context) (err error) {
	b.title("%d containers at once", idleCount)
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	sandboxes := make([]*docker.Container, idleCount)
	defer func() {
		var ending errgroup.Group
		ending.SetLimit(8)
		for _, sandbox := range sandboxes {
			if sandbox != nil {
				ending.Go(func() error { return sandbox.Close(ctx) })
			}
		}
		err = errors.Join(err, ending.Wait())
	}()
	start := time.Now()
	var starting errgroup.Group
	starting.SetLimit(2 * runtime.NumCPU())
	for i := range sandboxes {
		starting.Go(func() (err error) {
			sandbox, err := engine.Start(ctx, docker.Config{Image: b.image})
			if err == nil {
				sandboxes[i] = sandbox
			}
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		return err
	}
	b.row("starts per second", idleCount/time.Since(start).Seconds(), "1/s")
	start = time.Now()
	for _, sandbox := range sandboxes {
		res, err := sandbox.Execute(ctx, env.Command{Script: "echo here"})
		if err != nil {
			return err
		}
		if string(res.Output) != "here\n" {
			return fmt.Errorf("unexpected output %q", res.Output)
		}
	}
	b.row("commands per second, one in each container in turn", idleCount/time.Since(start).Seconds(), "1/s")
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	b.row("peak resident memory of this process", float64(usage.Maxrss)/1024, "MB")
	return nil
}
