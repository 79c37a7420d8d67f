package docker

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/env/helper/binaries"
)

// imageInfo is what Start needs to know about an image.
type imageInfo struct {
	id, digest, arch string
	// from is the id of the prepared image to create containers from; empty means
	// the image itself.
	from     string
	prepared *env.ImagePreparation
}

// findImage finds the image of a configuration, and pulls it if the engine does not
// have it for the platform. The image is not removed until release is called.
func (e *Engine) findImage(ctx context.Context, c Config) (found imageInfo, release func(), err error) {
	if e.images == nil || !e.hasHelper() { // without a helper, the container could not start after the pull
		found, err = e.pullIfMissing(ctx, c)
		return found, func() {}, err
	}
	img, release, err := e.images.Ensure(ctx, imagestore.Request{Ref: c.Image, Platform: c.Platform, Requester: c.Instance})
	if err != nil {
		return imageInfo{}, nil, err
	}
	return imageInfo{id: img.ID, arch: img.Arch, digest: img.Digest}, release, nil
}

// pullIfMissing is findImage without an image store.
func (e *Engine) pullIfMissing(ctx context.Context, c Config) (imageInfo, error) {
	found, err := e.inspect(ctx, c)
	if err != nil || found != nil {
		return newImageInfo(c.Image, found), err
	}
	if !e.hasHelper() { // do not pull gigabytes for a container that cannot start
		return imageInfo{}, &env.Error{Status: env.StartFailed, Op: "pull image " + c.Image, Err: binaries.ErrNotBuilt}
	}
	err = e.pulls.Do(ctx, c.Image+" "+c.Platform, func(ctx context.Context) error {
		if found, err := e.inspect(ctx, c); err != nil || found != nil {
			return err // another caller has pulled it since
		}
		return e.pull(ctx, c.Image, c.Platform, "")
	})
	if err != nil {
		return imageInfo{}, err
	}
	found, err = e.inspect(ctx, c)
	if err == nil && found == nil {
		err = &env.Error{
			Status: env.PullFailed, Op: "pull image " + c.Image,
			Err: fmt.Errorf("the pull succeeded, but there is no image for platform %q", c.Platform),
		}
	}
	return newImageInfo(c.Image, found), err
}

// inspect returns nil if the engine does not have the image, or has it for another
// architecture.
func (e *Engine) inspect(ctx context.Context, c Config) (*image.InspectResponse, error) {
	found, err := e.api.ImageInspect(ctx, c.Image)
	switch {
	case errdefs.IsNotFound(err):
		return nil, nil
	case errdefs.IsInvalidArgument(err):
		return nil, &env.Error{
			Status: env.ImageNotFound, Op: "find image " + c.Image,
			Hint: "check the name: it is not a valid image name", Err: err,
		}
	case err != nil:
		return nil, engineError(ctx, env.StartFailed, "find image "+c.Image, err)
	}
	if p := platform(c.Platform); p != nil && p.Architecture != found.Architecture {
		return nil, nil
	}
	return &found, nil
}

// newImageInfo converts an inspected image; name is the reference it was found by.
func newImageInfo(name string, i *image.InspectResponse) imageInfo {
	if i == nil {
		return imageInfo{}
	}
	return imageInfo{id: i.ID, arch: i.Architecture, digest: repoDigest(name, i.RepoDigests)}
}

// repoDigest returns the digest of the image in the repository of name, as
// repository@sha256:... An image can have digests in several repositories; the first
// digest is the fallback, and "" if there is none.
func repoDigest(name string, digests []string) string {
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
