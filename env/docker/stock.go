package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/images"
)

// Images looks after the engine's images; nil unless EngineConfig.Images asked
// for that.
func (e *Engine) Images() *images.Store { return e.images }

// lookAfterImages makes the store of this engine.
func (e *Engine) lookAfterImages(ctx context.Context, cfg images.Config) (*images.Store, error) {
	info, err := e.api.Info(ctx)
	if err != nil {
		return nil, failure(ctx, env.DaemonUnavailable, "ask engine about itself", err)
	}
	host := images.Host{
		ID:       info.ID,
		Platform: "linux/" + goArch(info.Architecture),
		Owner:    e.owner.String(),
		Living: func(s string) (alive, known bool) {
			o, ok := parseOwner(s)
			if !ok {
				return false, false // of another version, perhaps
			}
			standing := e.owner.sees(o)
			return standing == living, standing == living || standing == dead
		},
	}
	if host.ID == "" { // some engines have none
		host.ID = e.api.DaemonHost()
	}
	if here, err := os.Hostname(); err == nil && here == info.Name && strings.HasPrefix(e.api.DaemonHost(), "unix://") {
		host.Free = func() (int64, bool) { return freeBytes(info.DockerRootDir) }
	}
	return images.New(stockroom{e, &sync.Map{}}, host, cfg)
}

// goArch is an architecture as images have it, from the kernel's word for it.
func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

// stockroom is the engine as images.Store sees it.
type stockroom struct {
	e     *Engine
	known *sync.Map // id -> []images.Part, which never change
}

var _ images.Engine = stockroom{}

// Find implements images.Engine.
func (s stockroom) Find(ctx context.Context, ref, platform string) (images.Image, bool, error) {
	found, err := s.e.inspect(ctx, Config{Image: ref, Platform: platform})
	if err != nil || found == nil {
		return images.Image{}, false, err
	}
	return images.Image{
		ID: found.ID, Digest: digestOf(ref, found.RepoDigests), Arch: found.Architecture, Size: found.Size, Layers: found.RootFS.Layers,
	}, true, nil
}

// Pull implements images.Engine.
func (s stockroom) Pull(ctx context.Context, ref, platform, login string) error {
	return s.e.pull(ctx, ref, platform, login)
}

// Remove implements images.Engine.
func (s stockroom) Remove(ctx context.Context, ref string) error {
	_, err := s.e.api.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true})
	switch {
	case err == nil, errdefs.IsNotFound(err):
		return nil
	case errdefs.IsConflict(err):
		return fmt.Errorf("remove image %s: %w: %w", ref, images.ErrInUse, err)
	}
	return failure(ctx, env.DaemonUnavailable, "remove image "+ref, err)
}

// Stock implements images.Engine. An engine measures for one client at a time,
// and refuses the others.
func (s stockroom) Stock(ctx context.Context, of func(id string) bool) (images.Stock, error) {
	deadline := time.Now().Add(slowTimeout)
	for {
		used, err := s.e.api.DiskUsage(ctx, types.DiskUsageOptions{Types: []types.DiskUsageObject{types.ImageObject}})
		if err == nil {
			all := stock(used)
			for i, h := range all.Images {
				if of != nil && of(h.ID) {
					all.Images[i].Parts = s.parts(ctx, h.ID)
				}
			}
			return all, nil
		}
		if !strings.Contains(err.Error(), "already running") || time.Now().After(deadline) {
			return images.Stock{}, failure(ctx, env.DaemonUnavailable, "measure images", err)
		}
		select {
		case <-ctx.Done():
			return images.Stock{}, failure(ctx, env.DaemonUnavailable, "measure images", errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// parts are the layers of an image, as its history has them: engines do not say
// how large a layer is otherwise. A part is told by all that came before it. Of
// an image that is gone meanwhile there are none.
func (s stockroom) parts(ctx context.Context, id string) []images.Part {
	if known, ok := s.known.Load(id); ok {
		return known.([]images.Part) //nolint:errcheck // nothing else is in there
	}
	history, err := s.e.api.ImageHistory(ctx, id)
	if err != nil {
		return nil
	}
	found, err := s.e.api.ImageInspect(ctx, id)
	if err != nil {
		return nil
	}
	var parts []images.Part
	var sum [sha256.Size]byte
	for i, step := range slices.Backward(history) { // the newest comes first
		layer := ""
		if len(history) == len(found.RootFS.Layers) { // no step without a layer
			layer = found.RootFS.Layers[len(history)-1-i]
		}
		sum = sha256.Sum256(fmt.Appendf(nil, "%x %d %d %q %s", sum, step.Created, step.Size, step.CreatedBy, layer))
		if step.Size > 0 {
			parts = append(parts, images.Part{Key: hex.EncodeToString(sum[:]), Bytes: step.Size})
		}
	}
	s.known.Store(id, parts)
	return parts
}

func stock(used types.DiskUsage) images.Stock {
	s := images.Stock{Bytes: used.LayersSize}
	for _, i := range used.Images {
		if i == nil {
			continue
		}
		h := images.Holding{ID: i.ID, Size: i.Size, Shared: max(i.SharedSize, 0), InUse: i.Containers > 0}
		for _, tag := range i.RepoTags {
			if tag != "<none>:<none>" {
				h.Names = append(h.Names, tag)
			}
		}
		s.Images = append(s.Images, h)
	}
	return s
}
