package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// lease is how long a container lives without a sign of its owner. It is the last
// resort: normally a container ends with its owner.
const lease = 10 * time.Minute

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
	from, releasePrepared, err := e.preparedImage(ctx, c, img)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			releasePrepared()
		}
	}()
	box, err := e.startFrom(ctx, c, from)
	if from.prepared != nil && errdefs.IsNotFound(err) { // it was removed meanwhile
		box, err = e.startFrom(ctx, c, img)
	}
	if err != nil {
		return nil, err
	}
	box.releaseImage = func() { releasePrepared(); release() }
	return box, nil
}

// startFrom starts a container of an image that is here.
func (e *Engine) startFrom(ctx context.Context, c Config, img imageFacts) (*Container, error) {
	bin, err := e.helper(img.arch)
	if err != nil {
		return nil, &env.Error{Status: env.StartFailed, Op: "start " + c.Image, Err: err}
	}
	e.settle(ctx) // before the token: others start meanwhile
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
	if err != nil && e.shortcuts.blamed(err) {
		box, err = e.start(ctx, c, img, bin)
	}
	if err != nil {
		return nil, failure(ctx, env.StartFailed, "start container from "+c.Image, err)
	}
	return box, nil
}

// start makes one attempt.
func (e *Engine) start(ctx context.Context, c Config, img imageFacts, bin program) (_ *Container, err error) {
	private := c.canMount()
	if !private {
		if err := e.ensureHelper(ctx, bin, img.id); err != nil {
			return nil, err
		}
	}
	box := &Container{engine: e, name: containerName(c.Instance), born: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, box.release(ctx))
		}
	}()
	var mounts []mount.Mount
	var short *shortcut
	if private {
		mounts = append(mounts, privateMount())
	} else {
		mounts = append(mounts, helperMount(bin.volumeName(), true))
		short = e.shortcuts.offer()
	}
	if short != nil {
		defer short.close() // the helper has come by the end, or will not
		mounts = append(mounts, short.mount())
	}
	warnings, err := e.create(ctx, box.name, c.Platform,
		containerConfig(c, img, e.labels(c)), hostConfig(c, mounts))
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if private {
		if err := e.bring(ctx, box.name, bin); err != nil {
			return nil, err
		}
	}
	if box.stream, err = e.attach(ctx, box.name); err != nil {
		return nil, e.unattached(ctx, box.name, err)
	}
	box.death = e.watch(ctx, box.name)
	if err := e.run(ctx, box.name); err != nil {
		return nil, err
	}
	box.link = box.stream
	setup := helper.Setup{
		Dir:          c.Dir,
		Env:          c.Env,
		Interpreter:  c.Interpreter,
		LeaseSeconds: int(lease / time.Second),
		ToolDir:      toolDir,
	}
	if short != nil {
		setup.Meeting = short.meeting()
		box.link = cross(box.stream, short, e.pulse)
	}
	box.client, err = helper.Dial(ctx, box.link, helper.ClientConfig{
		Setup:   setup,
		Hash:    bin.hash,
		Timeout: c.Timeout,
		Overdue: box.overdue,
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, unstarted(box.lost(ctx, "start container from "+c.Image, err))
	}
	hello := box.client.Hello()
	if err := suits(c, hello.Shell); err != nil {
		return nil, err
	}
	box.info = info(c, img, hello, warnings)
	box.info.Network = e.connected(ctx, c.Network)
	e.entered(box)
	return box, nil
}

// unattached finds out why podman refused an attach. It prepares the container
// then, not at its start, and its reason is in a part of the answer that is not
// passed on; asked to start the container, it says so again.
func (e *Engine) unattached(ctx context.Context, id string, err error) error {
	if strings.Contains(err.Error(), "received 409") {
		return cmp.Or(e.run(ctx, id), err)
	}
	return err
}

// run starts the container; like create it is not given up half way.
func (e *Engine) run(ctx context.Context, id string) error {
	if err := e.api.ContainerStart(context.WithoutCancel(ctx), id, container.StartOptions{}); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// unstarted is the loss of a container whose helper never said a word: it was
// not up, whatever the engine thought.
func unstarted(e *env.Error) *env.Error {
	if e.Status == env.ContainerDied {
		e.Status = env.StartFailed
	}
	if e.Hint == "" && e.Err != nil {
		e.Hint = hintFor(e.Err.Error())
	}
	return e
}

// suits says whether the shell that the helper found is the one that was asked
// for. Another one would run every command a little differently.
func suits(c Config, found string) error {
	if len(c.Interpreter) == 0 || path.Base(found) == path.Base(c.Interpreter[0]) {
		return nil
	}
	e := &env.Error{
		Status: env.StartFailed, Op: "start container from " + c.Image,
		Err:  fmt.Errorf("the image has no %s", c.Interpreter[0]),
		Hint: "take another shell: environment.interpreter: [sh, -c]",
	}
	switch {
	case found == "":
		e.Hint = "choose an image with a shell, or set environment.interpreter to one that it has"
	case path.Base(found) != "sh":
		e.Hint = fmt.Sprintf("take another shell: environment.interpreter: [%s, -c]", found)
	}
	return e
}

// info joins what the helper, the image and the configuration say.
func info(c Config, img imageFacts, h helper.Hello, warnings []string) env.Info {
	i := h.Info()
	i.Disposable, i.Warnings = !c.writable(), warnings
	i.Image, i.ImageID, i.ImageDigest, i.ImageArch, i.Prepared = c.Image, img.id, img.digest, img.arch, img.prepared
	if h.DirMissing {
		i.Warnings = append(i.Warnings, fmt.Sprintf("the image has no %s; commands start in %s", c.Dir, h.Dir))
	}
	switch path.Base(h.Shell) {
	case "bash":
	case ".":
		i.Warnings = append(i.Warnings, "the image has no bash and no other shell; no command can run")
	default:
		if len(c.Interpreter) == 0 {
			i.Warnings = append(i.Warnings, "the image has no bash; commands run with "+h.Shell)
		}
	}
	return i
}
