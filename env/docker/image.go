package docker

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/binaries"
)

// imageFacts is what a start needs to know of an image.
type imageFacts struct {
	id, digest, arch string
}

// image finds the image of a configuration, and pulls it when it is not here
// or here for another platform.
func (e *Engine) image(ctx context.Context, c Config) (imageFacts, error) {
	found, err := e.inspect(ctx, c)
	if err != nil || found != nil {
		return facts(found), err
	}
	if len(e.ownVolumes()) == 0 { // gigabytes would be fetched in vain
		return imageFacts{}, &env.Error{Status: env.StartFailed, Op: "pull image " + c.Image, Err: binaries.ErrNotBuilt}
	}
	err = e.pulls.do(ctx, c.Image+" "+c.Platform, func(ctx context.Context) error { return e.pull(ctx, c.Image, c.Platform) })
	if err != nil {
		return imageFacts{}, err
	}
	found, err = e.inspect(ctx, c)
	if err == nil && found == nil {
		err = &env.Error{
			Status: env.PullFailed, Op: "pull image " + c.Image,
			Err: fmt.Errorf("the pull succeeded, but there is no image for platform %q", c.Platform),
		}
	}
	return facts(found), err
}

// inspect returns nil when the engine does not have the image.
func (e *Engine) inspect(ctx context.Context, c Config) (*image.InspectResponse, error) {
	found, err := e.api.ImageInspect(ctx, c.Image)
	switch {
	case errdefs.IsNotFound(err):
		return nil, nil
	case errdefs.IsInvalidArgument(err):
		return nil, &env.Error{
			Status: env.ImageNotFound, Op: "find image " + c.Image,
			Hint: "this is not the name of an image", Err: err,
		}
	case err != nil:
		return nil, failure(ctx, env.StartFailed, "find image "+c.Image, err)
	}
	if p := platform(c.Platform); p != nil && p.Architecture != found.Architecture {
		return nil, nil
	}
	return &found, nil
}

func facts(i *image.InspectResponse) imageFacts {
	if i == nil {
		return imageFacts{}
	}
	f := imageFacts{id: i.ID, arch: i.Architecture}
	if len(i.RepoDigests) > 0 {
		f.digest = i.RepoDigests[0]
	}
	return f
}
