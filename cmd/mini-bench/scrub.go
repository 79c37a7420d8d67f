//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
)

// Limits of a scrub, in seconds in addition to the start of a container: for the first
// attempt on an image, for each later attempt, and for each later attempt on an image
// whose history is already clean.
const (
	maxScrubFirst = 8
	maxScrubLater = 1
	maxScrubClean = 0.5
)

// scrubRun is the label of the images that this part creates and removes.
const scrubRun = "mini-bench-scrub"

// scrub measures the time of scrubbing the repository of an image. The repository is
// created by scripts/big-repository.sh.
func (b *bench) scrub(ctx context.Context) (err error) {
	dir := b.repository
	if dir == "" {
		dir = filepath.Join(b.tmp, "repository")
	}
	if _, err := os.Stat(dir); err != nil {
		if out, err := exec.CommandContext(ctx, "scripts/big-repository.sh", dir).CombinedOutput(); err != nil { //nolint:gosec // a directory chosen by the user
			return fmt.Errorf("make repository: %w: %s", err, out)
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	b.title("scrub of a repository, in addition to the start of a container")
	engine, closeEngine, err := b.openEngine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeEngine()) }()
	dirty, err := buildImage(ctx, engine, docker.Config{Image: b.image, Mounts: []docker.Mount{{Source: dir, Target: "/given"}}},
		"dirty", func(sandbox env.Environment) error { return runScript(ctx, sandbox, "cp -a /given /testbed") })
	if err != nil {
		return err
	}
	clean, err := buildImage(ctx, engine, docker.Config{Image: dirty, Dir: "/testbed"}, "clean", func(sandbox env.Environment) error {
		_, err := worktree.Scrub(ctx, sandbox)
		return err
	})
	if err != nil {
		return err
	}
	var plain []float64
	for range 5 {
		seconds, _, err := scrubbedStart(ctx, engine, docker.Config{Image: dirty, Dir: "/testbed"})
		if err != nil {
			return err
		}
		plain = append(plain, seconds)
	}
	b.row("start of a container", median(plain), "s")
	for _, variant := range []struct {
		name, image  string
		first, later float64
	}{{"", dirty, maxScrubFirst, maxScrubLater}, {" of a clean image", clean, maxScrubFirst, maxScrubClean}} {
		c := docker.Config{Image: variant.image, Dir: "/testbed", Prepare: &docker.Preparation{Key: worktree.PreparationKey(), Do: worktree.Prepare}}
		var overheads []float64
		for range 6 {
			seconds, report, err := scrubbedStart(ctx, engine, c)
			if err != nil {
				return err
			}
			if !report.IsClean() || !report.Prepared {
				return fmt.Errorf("scrub is not proven: %+v", report)
			}
			overheads = append(overheads, seconds-median(plain))
		}
		b.atMost("first attempt"+variant.name, overheads[0], variant.first, "s")
		b.atMost("each later attempt"+variant.name, median(overheads[1:]), variant.later, "s")
	}
	return nil
}

// openEngine opens the container engine with an image store of its own. closeEngine also
// removes the images that the part made.
func (b *bench) openEngine(ctx context.Context) (engine *docker.Engine, closeEngine func() error, err error) {
	engine, err = docker.Open(ctx, docker.EngineConfig{
		Images: &imagestore.Config{Dir: filepath.Join(b.tmp, "images")},
		Notify: func(text string) { fmt.Fprintln(os.Stderr, "mini-bench:", text) },
	})
	if err != nil {
		return nil, nil, err
	}
	return engine, func() error {
		ctx := context.WithoutCancel(ctx)
		_, pruneErr := engine.Images().Prune(ctx, nil, false)
		_, cleanErr := engine.Clean(ctx, docker.CleanOptions{IncludeKept: true, Run: scrubRun})
		return errors.Join(pruneErr, cleanErr, engine.Close())
	}, nil
}

// scrubbedStart starts a container. If c has a preparation, it also scrubs the repository
// or verifies that the image was prepared, and returns the report. seconds is the duration
// of both.
func scrubbedStart(ctx context.Context, engine *docker.Engine, c docker.Config) (seconds float64, report worktree.ScrubReport, err error) {
	start := time.Now()
	sandbox, err := engine.Start(ctx, c)
	if err != nil {
		return 0, report, err
	}
	defer func() { err = errors.Join(err, sandbox.Close(ctx)) }()
	if c.Prepare != nil {
		report, err = worktree.Scrub(ctx, sandbox)
	}
	return time.Since(start).Seconds(), report, err
}

// buildImage starts a container, calls prepare, and commits the container as an image.
func buildImage(ctx context.Context, engine *docker.Engine, c docker.Config, name string, prepare func(env.Environment) error) (_ string, err error) {
	c.Run, c.Instance, c.MemoryBytes = scrubRun, name, -1
	sandbox, err := engine.Start(ctx, c)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, sandbox.Close(ctx)) }()
	if err := prepare(sandbox); err != nil {
		return "", err
	}
	return sandbox.Keep(ctx, "1")
}

// runScript runs a script that must succeed.
func runScript(ctx context.Context, sandbox env.Environment, script string) error {
	res, err := sandbox.Execute(ctx, env.Command{Script: script, Timeout: 10 * time.Minute})
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("%s: exit code %d: %s", script, res.ExitCode, res.Output)
	}
	return err
}
