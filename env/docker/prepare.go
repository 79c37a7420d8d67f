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
	"github.com/minibench/mini/env/docker/images"
)

// Preparation is work that has the same result in every container of an image. It
// is done once: its container becomes a local image, from which the others start.
type Preparation struct {
	// Key names the work and its version.
	Key string
	// Do works in a container of the image, without the mounts and variables of
	// Config. It returns the note for env.Info.Prepared; an empty one says that
	// containers are to start from the image as it is.
	Do func(ctx context.Context, box env.Environment) (note string, err error)
	// Begun, where it is not nil, is called when a start begins to wait for the
	// work, and the function that it returns when the wait is over.
	Begun func() (ended func())
}

// Labels of prepared images.
const (
	labelPrepared   = "mini.prepared"    // the note
	labelPreparedOf = "mini.prepared.of" // the id of the image that it was made of
)

// preparedName is the name of the image that a preparation makes. It depends on
// everything that the result of the work can depend on, and not on the name of the
// image with the id, which may have several.
func preparedName(c Config, id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", id, c.Prepare.Key, c.Dir, c.User))
	return "mini-prepared:" + hex.EncodeToString(sum[:12])
}

// prepares reports whether containers are to start from a prepared image. Mounts
// may hide what was prepared, a root that is read-only was never changed, and
// other runtimes may keep changes where no commit sees them.
func (e *Engine) prepares(c Config) bool {
	return c.Prepare != nil && e.images != nil && len(c.Mounts) == 0 && !c.canMount() && !c.ReadOnly && c.Runtime == ""
}

// preparedImage returns the image with the work of c.Prepare done, which it makes
// where it is missing. Where none can be made the image itself will do. It is kept
// until release is called.
func (e *Engine) preparedImage(ctx context.Context, c Config, img imageFacts) (_ imageFacts, release func(), err error) {
	none := func() {}
	if !e.prepares(c) {
		return img, none, nil
	}
	name := preparedName(c, img.id)
	release, err = e.images.Hold(ctx, images.Need{Ref: name})
	if err != nil {
		return img, none, err
	}
	defer func() {
		if img.prepared == nil {
			release()
			release = none
		}
	}()
	start := time.Now()
	if !e.findPrepared(ctx, name, &img) && !e.isUnprepared(name) {
		ended := func() {}
		if c.Prepare.Begun != nil {
			ended = c.Prepare.Begun()
		}
		err := e.preparing.Do(ctx, name, func(ctx context.Context) error { return e.prepare(ctx, c, img, name) })
		ended()
		if ctx.Err() != nil {
			return img, none, context.Cause(ctx)
		}
		if err != nil || !e.findPrepared(ctx, name, &img) {
			e.leaveUnprepared(c, name, err)
		} else {
			img.prepared.Waited = time.Since(start)
		}
	}
	return img, release, nil
}

// findPrepared looks for a prepared image, and starts containers from it.
func (e *Engine) findPrepared(ctx context.Context, name string, img *imageFacts) bool {
	found, err := e.api.ImageInspect(ctx, name)
	if err != nil || found.Config == nil || found.Config.Labels[labelPreparedOf] != img.id {
		return false
	}
	img.from, img.prepared = found.ID, &env.Prepared{Note: found.Config.Labels[labelPrepared]}
	return true
}

// prepare makes a prepared image.
func (e *Engine) prepare(ctx context.Context, c Config, img imageFacts, name string) (err error) {
	if e.findPrepared(ctx, name, &img) { // by a call that ended meanwhile
		return nil
	}
	do := c.Prepare.Do
	c.Env, c.Tmpfs, c.Network, c.Prepare = nil, nil, networkNone, nil
	box, err := e.startFrom(ctx, c, img)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close(ctx)) }()
	note, err := do(ctx, box)
	if err != nil || note == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	made, err := e.api.ContainerCommit(ctx, box.name, container.CommitOptions{
		Comment: "an image that mini prepared",
		Pause:   true,
		Config: &container.Config{ // what is left out is taken from the container
			Labels: map[string]string{
				labelOwner: "", labelExpires: "", labelRun: "", labelInstance: "",
				labelPrepared: note, labelPreparedOf: img.id,
			},
		},
	})
	if err != nil {
		return failure(ctx, env.StartFailed, "commit "+box.name, err)
	}
	whole, quicker := img, img
	switch {
	case e.findPrepared(ctx, name, &quicker): // another mini has made it meanwhile
		return e.discard(ctx, made.ID)
	case !e.findPrepared(ctx, made.ID, &whole):
		return errors.Join(errNoLabels, e.discard(ctx, made.ID))
	}
	if err := e.api.ImageTag(ctx, made.ID, name); err != nil {
		return errors.Join(failure(ctx, env.StartFailed, "name image "+name, err), e.discard(ctx, made.ID))
	}
	return e.images.Made(context.WithoutCancel(ctx), name, c.Image)
}

var errNoLabels = errors.New("the engine does not keep the labels of images that are made of containers")

// discard removes an image without a name.
func (e *Engine) discard(ctx context.Context, id string) error {
	if _, err := e.api.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true}); err != nil {
		return failure(ctx, env.StartFailed, "remove image "+id, err)
	}
	return nil
}

// isUnprepared reports whether an image is used as it is.
func (e *Engine) isUnprepared(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unprepared[name]
}

// leaveUnprepared notes that an image is used as it is for as long as this process
// runs, and says why.
func (e *Engine) leaveUnprepared(c Config, name string, err error) {
	e.mu.Lock()
	told := e.unprepared[name]
	e.unprepared[name] = true
	e.mu.Unlock()
	if err != nil && !told && e.cfg.Notice != nil {
		e.cfg.Notice(fmt.Sprintf("no prepared image of %s could be made, so each of its attempts scrubs the repository itself: %v", c.Image, err))
	}
}
