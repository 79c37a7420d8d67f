package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/imagestore"
)

// Preparation is work with the same result in every container of an image. An Engine
// does the work once and commits the container to a local image, from which the other
// containers start.
type Preparation struct {
	// Key identifies the work, including its version.
	Key string
	// Do works in a container of the image, without the variables, tmpfs and network of
	// Config. It returns a note for env.Info.Prepared; an empty note means that
	// containers start from the original image.
	Do func(ctx context.Context, sandbox env.Environment) (note string, err error)
	// OnWait, if not nil, is called when Start begins to wait for the work. Start
	// calls the returned function after the wait.
	OnWait func() (ended func())
}

// Labels of prepared images.
const (
	labelPrepared   = "mini.prepared"    // note of the preparation
	labelPreparedOf = "mini.prepared.of" // id of the original image
)

// preparedName returns the name of a prepared image. The name contains a hash of every
// input of the work. The input includes the id of the original image and not its name,
// because the image may have several.
func preparedName(c Config, id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", id, c.Prepare.Key, c.Dir, c.User))
	return "mini-prepared:" + hex.EncodeToString(sum[:12])
}

// usesPrepared reports whether containers may start from a prepared image. They do not
// if the configuration has mounts, which may hide the prepared files, or SYS_ADMIN (see
// canMount), or a read-only root, which the work cannot change, or names a runtime, since
// a commit may not contain the changes in it.
func (e *Engine) usesPrepared(c Config) bool {
	return c.Prepare != nil && e.images != nil && len(c.Mounts) == 0 && !c.canMount() && !c.ReadOnly && c.Runtime == ""
}

// ensurePrepared returns img with the prepared image, and creates that if it is missing.
// It returns img unchanged if there is no preparation or the preparation fails. The
// prepared image is not removed until release is called.
func (e *Engine) ensurePrepared(ctx context.Context, c Config, img imageInfo) (_ imageInfo, release func(), err error) {
	noRelease := func() {}
	if !e.usesPrepared(c) {
		return img, noRelease, nil
	}
	name := preparedName(c, img.id)
	release, err = e.images.Lease(ctx, imagestore.Request{Ref: name})
	if err != nil {
		return img, noRelease, err
	}
	defer func() {
		if img.prepared == nil {
			release()
			release = noRelease
		}
	}()
	start := time.Now()
	if e.findPrepared(ctx, name, &img) {
		if err := e.images.AddFound(ctx, name, img.from, c.Image); err != nil {
			release()
			return img, noRelease, err
		}
		return img, release, nil
	}
	if !e.isUnprepared(name) {
		ended := func() {}
		if c.Prepare.OnWait != nil {
			ended = c.Prepare.OnWait()
		}
		err := e.preparing.Do(ctx, name, func(ctx context.Context) error { return e.prepare(ctx, c, img, name) })
		ended()
		if ctx.Err() != nil {
			return img, noRelease, context.Cause(ctx)
		}
		if err != nil || !e.findPrepared(ctx, name, &img) {
			e.skipPreparation(c, name, err)
		} else {
			img.prepared.Waited = time.Since(start)
		}
	}
	return img, release, nil
}

// findPrepared looks for a prepared image and, if it exists, sets img.from and
// img.prepared.
func (e *Engine) findPrepared(ctx context.Context, name string, img *imageInfo) bool {
	found, err := e.api.ImageInspect(ctx, name)
	if err != nil || found.Config == nil || found.Config.Labels[labelPreparedOf] != img.id {
		return false
	}
	img.from, img.prepared = found.ID, &env.ImagePreparation{Note: found.Config.Labels[labelPrepared]}
	return true
}

// prepare creates a prepared image.
func (e *Engine) prepare(ctx context.Context, c Config, img imageInfo, name string) (err error) {
	if e.findPrepared(ctx, name, &img) { // created by a call that ended meanwhile
		return nil
	}
	work := c.Prepare.Do
	c.Env, c.Tmpfs, c.Network, c.Prepare = nil, nil, networkNone, nil
	sandbox, err := e.startFrom(ctx, c, img)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sandbox.Close(ctx)) }()
	note, err := work(ctx, sandbox)
	if err != nil || note == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	committed, err := e.api.ContainerCommit(ctx, sandbox.name, container.CommitOptions{
		Comment: "an image that mini prepared",
		Pause:   true,
		Config: &container.Config{ // fields left out are taken from the container
			Labels: map[string]string{
				labelOwner: "", labelExpires: "", labelRun: "", labelInstance: "",
				labelPrepared: note, labelPreparedOf: img.id,
			},
		},
	})
	if err != nil {
		return engineError(ctx, env.StartFailed, "commit "+sandbox.name, err)
	}
	created, concurrent := img, img
	switch {
	case e.findPrepared(ctx, name, &concurrent): // another process created it meanwhile
		return e.removeImage(ctx, committed.ID)
	case !e.findPrepared(ctx, committed.ID, &created):
		return errors.Join(errNoLabels, e.removeImage(ctx, committed.ID))
	}
	if err := e.api.ImageTag(ctx, committed.ID, name); err != nil {
		return errors.Join(engineError(ctx, env.StartFailed, "name image "+name, err), e.removeImage(ctx, committed.ID))
	}
	return e.images.AddBuilt(context.WithoutCancel(ctx), name, c.Image)
}

var errNoLabels = errors.New("the engine does not keep the labels of committed images")

// removeImage removes an image by its id.
func (e *Engine) removeImage(ctx context.Context, id string) error {
	if _, err := e.api.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true}); err != nil {
		return engineError(ctx, env.StartFailed, "remove image "+id, err)
	}
	return nil
}

// isUnprepared reports whether the preparation was tried and there is no prepared
// image, because it failed or was not needed.
func (e *Engine) isUnprepared(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unprepared[name]
}

// skipPreparation records that this engine uses the original image. If err is not nil,
// it tells the user once.
func (e *Engine) skipPreparation(c Config, name string, err error) {
	e.mu.Lock()
	known := e.unprepared[name]
	e.unprepared[name] = true
	e.mu.Unlock()
	if err != nil && !known && e.cfg.Notify != nil {
		e.cfg.Notify(fmt.Sprintf("cannot prepare image %s; each attempt scrubs the repository itself: %v", c.Image, err))
	}
}
