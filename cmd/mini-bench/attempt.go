//go:build linux

package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
)

// Limits of what an attempt adds to the commands of its agent in a prepared image: the
// processes and threads that it starts in the sandbox, and milliseconds.
const (
	maxBefore, maxBeforeTime = 30, 500
	maxAfter, maxAfterTime   = 30, 500
)

// demoImage has a repository of twenty files; scripts/images.sh builds it.
const demoImage = "mini-demo-ledger:latest"

// attempt measures the work before the first call of a model, which is the check of the
// scrub and the state at the start, and after the submission, which is the diff.
func (b *bench) attempt(ctx context.Context) (err error) {
	b.title("an attempt in %s, without its agent", demoImage)
	engine, closeEngine, err := b.openEngine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeEngine()) }()
	var before, beforeTime, after, afterTime []float64
	for i := range 8 {
		m, err := measureAttempt(ctx, engine)
		if err != nil {
			return err
		}
		if i == 0 { // it prepares the image
			continue
		}
		before, after = append(before, float64(m.before)), append(after, float64(m.after))
		beforeTime, afterTime = append(beforeTime, milliseconds(m.beforeTime)), append(afterTime, milliseconds(m.afterTime))
	}
	b.atMost("processes and threads before the first call", median(before), maxBefore, "")
	b.atMost("time before the first call", median(beforeTime), maxBeforeTime, "ms")
	b.atMost("processes and threads after the submission", median(after), maxAfter, "")
	b.atMost("time after the submission", median(afterTime), maxAfterTime, "ms")
	return nil
}

// attemptWork is what one attempt adds: processes and threads started, and times.
type attemptWork struct {
	before, after         int
	beforeTime, afterTime time.Duration
}

// measureAttempt makes an attempt whose agent changes one file.
func measureAttempt(ctx context.Context, engine *docker.Engine) (m attemptWork, err error) {
	sandbox, err := engine.Start(ctx, docker.Config{
		Image: demoImage, Dir: "/testbed", MemoryBytes: -1,
		Prepare: &docker.Preparation{Key: worktree.PreparationKey(), Do: worktree.Prepare},
	})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, sandbox.Close(ctx)) }()
	var tree *worktree.Tree
	m.before, m.beforeTime, err = count(ctx, sandbox, func() error {
		if _, err := worktree.Scrub(ctx, sandbox); err != nil {
			return err
		}
		tree, err = worktree.Open(ctx, sandbox, worktree.Config{})
		return err
	})
	if err != nil {
		return m, err
	}
	if err := runScript(ctx, sandbox, "echo changed >> README.md"); err != nil {
		return m, err
	}
	m.after, m.afterTime, err = count(ctx, sandbox, func() error {
		_, err := tree.Diff(ctx)
		return err
	})
	return m, err
}

// count returns the number of processes and threads that work starts in a sandbox, and its
// time.
func count(ctx context.Context, sandbox env.Environment, work func() error) (int, time.Duration, error) {
	first, err := lastProcess(ctx, sandbox)
	if err != nil {
		return 0, 0, err
	}
	second, err := lastProcess(ctx, sandbox)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := work(); err != nil {
		return 0, 0, err
	}
	duration := time.Since(start)
	third, err := lastProcess(ctx, sandbox)
	return third - second - (second - first), duration, err // lastProcess starts some too
}

// lastProcess returns the number of the last process or thread of the sandbox.
func lastProcess(ctx context.Context, sandbox env.Environment) (int, error) {
	res, err := sandbox.Execute(ctx, env.Command{Script: "read -r _ _ _ _ last </proc/loadavg && echo $last", Timeout: time.Minute})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(res.Output)))
}
