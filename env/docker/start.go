package docker

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// Start brings up a sandbox: the image is pulled when it is missing, a
// container made, and the helper within greeted. The error is an *env.Error
// whose status says what failed, a plain one when the configuration is wrong,
// or the cause of ctx when that ended; nothing is left behind in either case.
func (e *Engine) Start(ctx context.Context, c Config) (_ *Container, err error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure container: %w", err)
	}
	c = c.withDefaults()
	img, release, err := e.image(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	bin, err := e.helper(img.arch)
	if err != nil {
		return nil, &env.Error{Status: env.StartFailed, Op: "start " + c.Image, Err: err}
	}
	select {
	case e.starts <- struct{}{}:
		defer func() { <-e.starts }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	box, err := e.start(ctx, c, img, bin)
	if err != nil && helperMissing(err) { // the volume was emptied since it was filled
		e.setFilled(bin.volumeName(), false)
		box, err = e.start(ctx, c, img, bin)
	}
	if err != nil {
		return nil, failure(ctx, env.StartFailed, "start container from "+c.Image, err)
	}
	box.releaseImage = release
	return box, nil
}

// start makes one attempt.
func (e *Engine) start(ctx context.Context, c Config, img imageFacts, bin binary) (_ *Container, err error) {
	if err := e.ensureHelper(ctx, bin, img.id); err != nil {
		return nil, err
	}
	box := &Container{engine: e, name: containerName(c.Instance), born: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, box.release(ctx))
		}
	}()
	warnings, err := e.create(ctx, box.name, c.Platform,
		containerConfig(c, e.labels(c)), hostConfig(c, bin.volumeName()))
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if box.stream, err = e.attach(ctx, box.name); err != nil {
		return nil, err
	}
	box.death = e.watch(ctx, box.name)
	if err := e.run(ctx, box.name); err != nil {
		return nil, err
	}
	box.client, err = helper.Dial(ctx, box.stream, helper.ClientConfig{
		Setup: helper.Setup{
			Dir:          c.Dir,
			Env:          c.Env,
			Interpreter:  c.Interpreter,
			LeaseSeconds: int(c.Lease / time.Second),
		},
		Hash:    bin.hash,
		Timeout: c.Timeout,
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, box.lost(ctx, "start container from "+c.Image, err)
	}
	box.info = info(c, img, box.client.Hello(), warnings)
	return box, nil
}

// run starts the container; like create it is not given up half way.
func (e *Engine) run(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineTimeout)
	defer cancel()
	if err := e.api.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// info joins what the helper, the image and the configuration say.
func info(c Config, img imageFacts, h helper.Hello, warnings []string) env.Info {
	i := env.Info{
		System:      h.System,
		Node:        h.Node,
		Release:     h.Release,
		Version:     h.Kernel,
		Machine:     h.Machine,
		Dir:         h.Dir,
		Network:     c.Network != "none",
		Image:       c.Image,
		ImageID:     img.id,
		ImageDigest: img.digest,
		Warnings:    warnings,
	}
	if h.DirMissing {
		i.Warnings = append(i.Warnings, fmt.Sprintf("the image has no %s; commands start in %s", c.Dir, h.Dir))
	}
	switch want := path.Base(c.Interpreter[0]); {
	case h.Shell == "":
		i.Warnings = append(i.Warnings, fmt.Sprintf("the image has no %s and no other shell; no command can run", want))
	case path.Base(h.Shell) != want:
		i.Warnings = append(i.Warnings, fmt.Sprintf("the image has no %s; commands run with %s", want, h.Shell))
	}
	return i
}
