//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
)

// The bars of a sandbox's life, and of many of them.
const (
	removalLimit = 100 // ms
	floodOver    = 0.5 // seconds above what head itself needs
	floodMemory  = 28  // MB
	idle         = 300 // containers
)

const floodBytes = 200_000_000

// life measures starts and ends, one after another.
func (b *bench) life(ctx context.Context) (err error) {
	b.title("one sandbox after another; medians of 15")
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	var starts, firsts, ends []float64
	for range 15 {
		t0 := time.Now()
		box, err := engine.Start(ctx, docker.Config{Image: b.image})
		if err != nil {
			return err
		}
		t1 := time.Now()
		_, failed := box.Execute(ctx, env.Command{Script: "true"})
		t2 := time.Now()
		if err := errors.Join(failed, box.Close(ctx)); err != nil {
			return err
		}
		starts = append(starts, t1.Sub(t0).Seconds()*1e3)
		firsts = append(firsts, t2.Sub(t1).Seconds()*1e3)
		ends = append(ends, time.Since(t2).Seconds()*1e3)
	}
	b.row("create and start, until the helper has answered", median(starts), "ms")
	b.row("the first command", median(firsts), "ms")
	b.atMost("removal", median(ends), removalLimit, "ms")
	return nil
}

// flood measures a command whose output nobody can want.
func (b *bench) flood(ctx context.Context) error {
	b.title("%d MB of output", floodBytes/1_000_000)
	var alone, whole, peaks []float64
	for range 3 {
		for _, way := range []struct {
			command string
			ms      *[]float64
		}{
			{fmt.Sprintf("head -c %d /dev/zero | cat >/dev/null", floodBytes), &alone},
			{fmt.Sprintf("head -c %d /dev/zero", floodBytes), &whole},
		} {
			run, err := b.bench(ctx, options{instances: 1, steps: 1, workers: 1, flag: "-c", command: way.command})
			if err != nil {
				return err
			}
			took, err := run.durations()
			if err != nil {
				return err
			}
			*way.ms = append(*way.ms, took[0])
			peaks = append(peaks, run.peak)
		}
	}
	b.row("head alone, into a pipe", median(alone), "s")
	b.row("the step", median(whole), "s")
	b.atMost("the step above head alone", median(whole)-median(alone), floodOver, "s")
	b.atMost("mini's resident memory, peak", median(peaks), floodMemory, "MB")
	return nil
}

// many holds a crowd of idle containers with this one process.
func (b *bench) many(ctx context.Context) (err error) {
	b.title("%d containers at once", idle)
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	boxes := make([]*docker.Container, idle)
	defer func() {
		var ending errgroup.Group
		ending.SetLimit(8)
		for _, box := range boxes {
			if box != nil {
				ending.Go(func() error { return box.Close(ctx) })
			}
		}
		err = errors.Join(err, ending.Wait())
	}()
	start := time.Now()
	var starting errgroup.Group
	starting.SetLimit(2 * runtime.NumCPU())
	for i := range boxes {
		starting.Go(func() (err error) {
			box, err := engine.Start(ctx, docker.Config{Image: b.image})
			if err == nil {
				boxes[i] = box
			}
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		return err
	}
	b.row("starts a second", idle/time.Since(start).Seconds(), "1/s")
	start = time.Now()
	for _, box := range boxes {
		res, err := box.Execute(ctx, env.Command{Script: "echo here"})
		if err != nil {
			return err
		}
		if string(res.Output) != "here\n" {
			return fmt.Errorf("a sandbox answered %q", res.Output)
		}
	}
	b.row("a command in each, one after another, a second", idle/time.Since(start).Seconds(), "1/s")
	resident, err := residentMemory()
	if err != nil {
		return err
	}
	b.row("resident memory of this process", resident, "MB")
	return nil
}
