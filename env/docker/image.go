package docker

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/env/helper/binaries"
)

// imageFacts is what a start needs to know of an image.
type imageFacts struct {
	id, digest, arch string
	// from is the id of what containers are made from, where that is not the
	// image itself but a prepared one.
	from     string
	prepared *env.Prepared
}

// image finds the image of a configuration, and pulls it when it is not here
// or here for another platform. It stays until release is called.
func (e *Engine) image(ctx context.Context, c Config) (found imageFacts, release func(), err error) {
	if e.images == nil || len(e.ownVolumes()) == 0 { // without a helper nothing is to be fetched
		found, err = e.imageAlone(ctx, c)
		return found, func() {}, err
	}
	img, release, err := e.images.Ensure(ctx, images.Need{Ref: c.Image, Platform: c.Platform, For: c.Instance})
	if err != nil {
		return imageFacts{}, nil, err
	}
	return imageFacts{id: img.ID, arch: img.Arch, digest: img.Digest}, release, nil
}

// imageAlone is image where nothing looks after images.
func (e *Engine) imageAlone(ctx context.Context, c Config) (imageFacts, error) {
	found, err := e.inspect(ctx, c)
	if err != nil || found != nil {
		return facts(c.Image, found), err
	}
	if len(e.ownVolumes()) == 0 { // gigabytes would be fetched in vain
		return imageFacts{}, &env.Error{Status: env.StartFailed, Op: "pull image " + c.Image, Err: binaries.ErrNotBuilt}
	}
	err = e.pulls.Do(ctx, c.Image+" "+c.Platform, func(ctx context.Context) error { return e.pull(ctx, c.Image, c.Platform, "") })
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
	return facts(c.Image, found), err
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

// facts are those of an image that was asked for by a name.
func facts(name string, i *image.InspectResponse) imageFacts {
	if i == nil {
		return imageFacts{}
	}
	return imageFacts{id: i.ID, arch: i.Architecture, digest: digestOf(name, i.RepoDigests)}
}

// digestOf is the digest by which the image is known where its name says: the
// same image may be known in several places.
func digestOf(name string, digests []string) string {
	if named, err := reference.ParseDockerRef(name); err == nil {
		for _, d := range digests {
			if repository, _, ok := strings.Cut(d, "@"); ok && repository == reference.FamiliarName(named) {
				return d
			}
		}
	}
	if len(digests) > 0 {
		return digests[0]
	}
	return ""
}
