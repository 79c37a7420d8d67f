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
	"github.com/minibench/mini/env/docker/images"
)

// The bars of a scrub, in seconds beyond the start of a container: of the first
// attempt on an image, of each further one, and of attempts on an image whose
// history was clean before.
const (
	scrubFirst   = 8
	scrubFurther = 1
	scrubClean   = 0.5
)

// scrubRun labels the images that the part makes, which go at its end.
const scrubRun = "mini-bench-scrub"

// scrub measures what it costs attempts that their repository is scrubbed: one of
// scripts/big-repository.sh, in an image.
func (b *bench) scrub(ctx context.Context) (err error) {
	dir := b.repository
	if dir == "" {
		dir = filepath.Join(b.tmp, "repository")
	}
	if _, err := os.Stat(dir); err != nil {
		if out, err := exec.CommandContext(ctx, "scripts/big-repository.sh", dir).CombinedOutput(); err != nil { //nolint:gosec // the user's own folder
			return fmt.Errorf("make repository: %w: %s", err, out)
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	b.title("the scrub of a repository, beyond the start of a container")
	engine, err := docker.Open(ctx, docker.EngineConfig{
		Images: &images.Config{Dir: filepath.Join(b.tmp, "images")},
		Notice: func(text string) { fmt.Fprintln(os.Stderr, "mini-bench:", text) },
	})
	if err != nil {
		return err
	}
	defer func() {
		end := context.WithoutCancel(ctx)
		_, pruned := engine.Images().Prune(end, nil, false)
		_, cleaned := engine.Clean(end, docker.Thorough{Kept: true, Run: scrubRun})
		err = errors.Join(err, pruned, cleaned, engine.Close())
	}()
	dirty, err := imageOf(ctx, engine, docker.Config{Image: b.image, Mounts: []docker.Mount{{Source: dir, Target: "/given"}}},
		"dirty", func(box env.Environment) error { return shell(ctx, box, "cp -a /given /testbed") })
	if err != nil {
		return err
	}
	clean, err := imageOf(ctx, engine, docker.Config{Image: dirty, Dir: "/testbed"}, "clean", func(box env.Environment) error {
		_, err := worktree.Scrub(ctx, box)
		return err
	})
	if err != nil {
		return err
	}
	var plain []float64
	for range 5 {
		took, _, err := scrubbedStart(ctx, engine, docker.Config{Image: dirty, Dir: "/testbed"})
		if err != nil {
			return err
		}
		plain = append(plain, took)
	}
	b.row("start of a container", median(plain), "s")
	for _, of := range []struct {
		name, image    string
		first, further float64
	}{{"", dirty, scrubFirst, scrubFurther}, {" of a clean image", clean, scrubFirst, scrubClean}} {
		c := docker.Config{Image: of.image, Dir: "/testbed", Prepare: &docker.Preparation{Key: worktree.PreparationKey(), Do: worktree.Prepare}}
		var took []float64
		for range 6 {
			seconds, proof, err := scrubbedStart(ctx, engine, c)
			if err != nil {
				return err
			}
			if !proof.Holds() || !proof.Prepared {
				return fmt.Errorf("the proof is %+v", proof)
			}
			took = append(took, seconds-median(plain))
		}
		b.atMost("first attempt"+of.name, took[0], of.first, "s")
		b.atMost("each further attempt"+of.name, median(took[1:]), of.further, "s")
	}
	return nil
}

// scrubbedStart starts a container and, where its image is to be prepared, proves that
// its repository is scrubbed. It returns the seconds until then.
func scrubbedStart(ctx context.Context, engine *docker.Engine, c docker.Config) (seconds float64, p worktree.Proof, err error) {
	start := time.Now()
	box, err := engine.Start(ctx, c)
	if err != nil {
		return 0, p, err
	}
	defer func() { err = errors.Join(err, box.Close(ctx)) }()
	if c.Prepare != nil {
		p, err = worktree.Scrub(ctx, box)
	}
	return time.Since(start).Seconds(), p, err
}

// imageOf keeps a container as an image, after some work in it.
func imageOf(ctx context.Context, engine *docker.Engine, c docker.Config, name string, work func(env.Environment) error) (_ string, err error) {
	c.Run, c.Instance, c.MemoryBytes = scrubRun, name, -1
	box, err := engine.Start(ctx, c)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, box.Close(ctx)) }()
	if err := work(box); err != nil {
		return "", err
	}
	return box.Keep(ctx, "1")
}

// shell runs a command that must not fail.
func shell(ctx context.Context, box env.Environment, script string) error {
	res, err := box.Execute(ctx, env.Command{Script: script, Timeout: 10 * time.Minute})
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("%s: exit code %d: %s", script, res.ExitCode, res.Output)
	}
	return err
}
