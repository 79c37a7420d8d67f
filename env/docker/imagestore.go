package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/imagestore"
)

// Images returns the image store; nil without EngineConfig.Images.
func (e *Engine) Images() *imagestore.Store { return e.images }

// openImageStore creates the image store of this engine.
func (e *Engine) openImageStore(ctx context.Context, cfg imagestore.Config) (*imagestore.Store, error) {
	info, err := e.api.Info(ctx)
	if err != nil {
		return nil, engineError(ctx, env.DaemonUnavailable, "ask engine about itself", err)
	}
	engineInfo := imagestore.EngineInfo{
		ID:       info.ID,
		Platform: "linux/" + imageArch(info.Architecture),
		Owner:    e.owner.String(),
		OwnerAlive: func(s string) (alive, known bool) {
			o, ok := parseOwner(s)
			if !ok {
				return false, false // written by another version of mini
			}
			state := e.owner.stateOf(o)
			return state == ownerAlive, state == ownerAlive || state == ownerDead
		},
	}
	if engineInfo.ID == "" { // some engines have no id
		engineInfo.ID = e.api.DaemonHost()
	}
	if host, err := os.Hostname(); err == nil && host == info.Name && strings.HasPrefix(e.api.DaemonHost(), "unix://") {
		engineInfo.FreeDisk = func() (int64, bool) { return freeBytes(info.DockerRootDir) }
	}
	return imagestore.New(imageEngine{e}, engineInfo, cfg)
}

// imageArch converts the kernel's name of an architecture to that of images.
func imageArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

// imageEngine implements imagestore.Engine.
type imageEngine struct{ e *Engine }

var _ imagestore.Engine = imageEngine{}

// Find implements imagestore.Engine.
func (s imageEngine) Find(ctx context.Context, ref, platform string) (imagestore.Image, bool, error) {
	found, err := s.e.inspect(ctx, Config{Image: ref, Platform: platform})
	if err != nil || found == nil {
		return imagestore.Image{}, false, err
	}
	return imagestore.Image{
		ID: found.ID, Digest: repoDigest(ref, found.RepoDigests), Arch: found.Architecture, Size: found.Size, Layers: found.RootFS.Layers,
	}, true, nil
}

// Pull implements imagestore.Engine.
func (s imageEngine) Pull(ctx context.Context, ref, platform, login string) error {
	return s.e.pull(ctx, ref, platform, login)
}

// Remove implements imagestore.Engine.
func (s imageEngine) Remove(ctx context.Context, ref string) error {
	_, err := s.e.api.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true})
	switch {
	case err == nil, errdefs.IsNotFound(err):
		return nil
	case errdefs.IsConflict(err):
		return fmt.Errorf("remove image %s: %w: %w", ref, imagestore.ErrInUse, err)
	}
	return engineError(ctx, env.DaemonUnavailable, "remove image "+ref, err)
}

// DiskUsage implements imagestore.Engine. An engine measures for one client at a time
// and rejects other requests, so DiskUsage retries.
func (s imageEngine) DiskUsage(ctx context.Context) (imagestore.DiskUsage, error) {
	deadline := time.Now().Add(requestTimeout)
	for {
		used, err := s.e.api.DiskUsage(ctx, types.DiskUsageOptions{Types: []types.DiskUsageObject{types.ImageObject}})
		if err == nil {
			return newDiskUsage(used), nil
		}
		if !strings.Contains(err.Error(), "already running") || time.Now().After(deadline) {
			return imagestore.DiskUsage{}, engineError(ctx, env.DaemonUnavailable, "get disk usage of images", err)
		}
		select {
		case <-ctx.Done():
			return imagestore.DiskUsage{}, engineError(ctx, env.DaemonUnavailable, "get disk usage of images", errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func newDiskUsage(used types.DiskUsage) imagestore.DiskUsage {
	usage := imagestore.DiskUsage{Bytes: used.LayersSize}
	for _, i := range used.Images {
		if i == nil {
			continue
		}
		img := imagestore.ImageUsage{ID: i.ID, Size: i.Size, Shared: max(i.SharedSize, 0), InUse: i.Containers > 0}
		for _, tag := range i.RepoTags {
			if tag != "<none>:<none>" {
				img.Names = append(img.Names, tag)
			}
		}
		usage.Images = append(usage.Images, img)
	}
	return usage
}
