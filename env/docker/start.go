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

// lease is how long a container lives without a message from its owner. Normally the
// container ends earlier, when its owner's connection closes.
const lease = 10 * time.Minute

// Start starts a sandbox: it pulls the image if the engine does not have it,
// creates a container and waits for the helper. The error is a plain one if the
// configuration is invalid, the cause of ctx if that ended, and otherwise an
// *env.Error with a status. If Start fails, it removes the container.
func (e *Engine) Start(ctx context.Context, c Config) (_ *Container, err error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure container: %w", err)
	}
	c = c.withDefaults()
	img, release, err := e.findImage(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	from, releasePrepared, err := e.ensurePrepared(ctx, c, img)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			releasePrepared()
		}
	}()
	sandbox, err := e.startFrom(ctx, c, from)
	if from.prepared != nil && errdefs.IsNotFound(err) { // the prepared image was removed meanwhile
		sandbox, err = e.startFrom(ctx, c, img)
	}
	if err != nil {
		return nil, err
	}
	sandbox.releaseImage = func() { releasePrepared(); release() }
	return sandbox, nil
}

// startFrom starts a container from an image that the engine has.
func (e *Engine) startFrom(ctx context.Context, c Config, img imageInfo) (*Container, error) {
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
	sandbox, err := e.startOnce(ctx, c, img, bin)
	if err != nil && isHelperMissing(err) { // the volume was emptied since it was filled
		e.setFilled(bin.volumeName(), false)
		sandbox, err = e.startOnce(ctx, c, img, bin)
	}
	if err != nil && e.hostSockets.disableOnError(err) {
		sandbox, err = e.startOnce(ctx, c, img, bin)
	}
	if err != nil {
		return nil, engineError(ctx, env.StartFailed, "start container from "+c.Image, err)
	}
	return sandbox, nil
}

// startOnce starts a container, without retries.
func (e *Engine) startOnce(
	ctx context.Context, c Config, img imageInfo, bin helperBinary,
) (_ *Container, err error) {
	private := c.canMount()
	if !private {
		if err := e.ensureHelper(ctx, bin, img.id); err != nil {
			return nil, err
		}
	}
	sandbox := &Container{engine: e, name: containerName(c.Instance), created: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, sandbox.teardown(ctx))
		}
	}()
	var mounts []mount.Mount
	var socket *hostSocket
	if private {
		mounts = append(mounts, privateHelperMount())
	} else {
		mounts = append(mounts, helperMount(bin.volumeName(), true))
		socket = e.hostSockets.open()
	}
	if socket != nil {
		defer socket.close() // the helper has connected by then, or will use the attached stream
		mounts = append(mounts, socket.mount())
	}
	warnings, err := e.create(ctx, sandbox.name, c.Platform,
		containerConfig(c, img, e.labels(c)), hostConfig(c, mounts))
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if private {
		if err := e.copyPrivateHelper(ctx, sandbox.name, bin); err != nil {
			return nil, err
		}
	}
	if sandbox.stream, err = e.attach(ctx, sandbox.name); err != nil {
		return nil, e.attachError(ctx, sandbox.name, err)
	}
	sandbox.exit = e.watchExit(ctx, sandbox.name)
	if err := e.startContainer(ctx, sandbox.name); err != nil {
		return nil, err
	}
	sandbox.conn = sandbox.stream
	setup := helper.Setup{
		Dir:          c.Dir,
		Env:          c.Env,
		Interpreter:  c.Interpreter,
		LeaseSeconds: int(lease / time.Second),
		ToolDir:      toolDir,
	}
	if socket != nil {
		setup.Socket = socket.containerPath()
		sandbox.conn = newSocketConn(sandbox.stream, socket, e.heartbeat)
	}
	sandbox.client, err = helper.Dial(ctx, sandbox.conn, helper.ClientConfig{
		Setup:          setup,
		Hash:           bin.hash,
		Timeout:        c.Timeout,
		ExtendDeadline: sandbox.extendDeadline,
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, startError(sandbox.lossError(ctx, "start container from "+c.Image, err))
	}
	hello := sandbox.client.Hello()
	if err := checkShell(c, hello.Shell); err != nil {
		return nil, err
	}
	sandbox.info = newInfo(c, img, hello, warnings)
	sandbox.info.Network = e.hasNetwork(ctx, c.Network)
	e.addContainer(sandbox)
	return sandbox, nil
}

// attachError returns the reason why podman refused to attach. Podman sets up the
// container when a client attaches, not at its start, and reports the reason in a
// part of the response that the client drops. Starting the container reports it.
func (e *Engine) attachError(ctx context.Context, id string, err error) error {
	if strings.Contains(err.Error(), "received 409") {
		return cmp.Or(e.startContainer(ctx, id), err)
	}
	return err
}

// startContainer starts the container. Like create it ignores cancellation.
func (e *Engine) startContainer(ctx context.Context, id string) error {
	if err := e.api.ContainerStart(context.WithoutCancel(ctx), id, container.StartOptions{}); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// startError changes the error of a container whose helper never answered: the
// sandbox did not start, although the engine reported success.
func startError(e *env.Error) *env.Error {
	if e.Status == env.ContainerDied {
		e.Status = env.StartFailed
	}
	if e.Hint == "" && e.Err != nil {
		e.Hint = hintFor(e.Err.Error())
	}
	return e
}

// checkShell returns an error if the helper did not find the configured shell.
// Commands could behave differently in another shell.
func checkShell(c Config, found string) error {
	if len(c.Interpreter) == 0 || path.Base(found) == path.Base(c.Interpreter[0]) {
		return nil
	}
	e := &env.Error{
		Status: env.StartFailed, Op: "start container from " + c.Image,
		Err:  fmt.Errorf("the image has no %s", c.Interpreter[0]),
		Hint: "choose another shell: environment.interpreter: [sh, -c]",
	}
	switch {
	case found == "":
		e.Hint = "choose an image with a shell, or set environment.interpreter to one that it has"
	case path.Base(found) != "sh":
		e.Hint = fmt.Sprintf("choose another shell: environment.interpreter: [%s, -c]", found)
	}
	return e
}

// newInfo combines the helper's Hello with the image and the configuration.
func newInfo(c Config, img imageInfo, h helper.Hello, warnings []string) env.Info {
	i := h.Info()
	i.Disposable, i.Warnings = !c.hasWritableMount(), warnings
	i.Image, i.ImageID, i.ImageDigest, i.ImageArch, i.Prepared = c.Image, img.id, img.digest, img.arch, img.prepared
	if h.DirMissing {
		i.Warnings = append(i.Warnings, fmt.Sprintf("the image has no %s; commands start in %s", c.Dir, h.Dir))
	}
	switch path.Base(h.Shell) {
	case "bash":
	case ".": // path.Base of an empty path
		i.Warnings = append(i.Warnings, "the image has no bash and no other shell; no command can run")
	default:
		if len(c.Interpreter) == 0 {
			i.Warnings = append(i.Warnings, "the image has no bash; commands run with "+h.Shell)
		}
	}
	return i
}
