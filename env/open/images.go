package envopen

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/harbor"
	datasetopen "github.com/minibench/mini/datasets/open"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/env/docker/imagestore/registry"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/version"
)

// OpenImages opens the image store of the configured engine. modify may change the
// engine's configuration; for querySizes, see imageConfig. The caller must call done.
func OpenImages(
	ctx context.Context, cfg *configs.Resolved, querySizes bool,
	notify func(imagestore.Event), modify func(*docker.EngineConfig),
) (store *imagestore.Store, done func() error, err error) {
	c, closeRegistry, err := imageConfig(cfg, querySizes, notify)
	if err != nil {
		return nil, nil, err
	}
	e := docker.EngineConfig{Images: c, PullTimeout: configs.Duration(cfg.Environment.PullTimeout)}
	modify(&e)
	engine, err := docker.Open(ctx, e)
	if err != nil {
		closeRegistry()
		return nil, nil, usage.Wrap(err)
	}
	return engine.Images(), func() error {
		defer closeRegistry()
		return engine.Close()
	}, nil
}

// imageConfig returns the configuration of the image store. If querySizes is true or
// run.image_budget is set, the store asks for image sizes even registries that count such a
// request as a pull. The caller must call done.
func imageConfig(cfg *configs.Resolved, querySizes bool, notify func(imagestore.Event)) (c *imagestore.Config, done func(), err error) {
	dir, err := datasetopen.CacheDir()
	if err != nil {
		return nil, nil, err
	}
	budget, _ := configs.ParseDiskSize(cfg.Run.ImageBudget) // validated when the configuration was resolved
	minFree, _ := configs.ParseDiskSize(cfg.Run.MinFreeDisk)
	client, err := registry.New("mini/"+version.Version, budget > 0 || querySizes)
	if err != nil {
		return nil, nil, err
	}
	return &imagestore.Config{
		Registry: client, Dir: filepath.Join(dir, "images"), Budget: budget, MinFree: minFree,
		Prefetch: cfg.Run.Prefetch, PullsPerMinute: cfg.Run.PullsPerMinute, Notify: notify,
	}, client.Close, nil
}

// ImageRequest returns the request for the image of an instance's sandbox.
func ImageRequest(cfg *configs.Resolved, in datasets.Instance) imagestore.Request {
	return imagestore.Request{Ref: ImageName(cfg, in), Platform: cfg.Environment.Platform, Requester: in.ID}
}

// IsBuilt reports whether the image of a row is built from the task's folder.
func IsBuilt(in datasets.Instance) bool {
	return in.TaskDir != "" && strings.HasPrefix(in.Image, harbor.ImagePrefix)
}

// ImageRequests returns the requests for the images of rows, except those that are built.
func ImageRequests(cfg *configs.Resolved, rows []datasets.Instance) []imagestore.Request {
	requests := make([]imagestore.Request, 0, len(rows))
	for _, in := range rows {
		if !IsBuilt(in) {
			requests = append(requests, ImageRequest(cfg, in))
		}
	}
	return requests
}

// Prefetch implements runner.Prefetcher: it pulls images ahead of the workers.
func (s *Sandboxes) Prefetch(ctx context.Context, todo []datasets.Instance) (stop func()) {
	if s.Images == nil {
		return func() {}
	}
	return s.Images.Prefetch(ctx, s.requests(todo))
}

// CheckBudget returns an error if run.image_budget is too small for one of the images
// that the workers start with (see imagestore.Store.CheckBudget).
func (s *Sandboxes) CheckBudget(ctx context.Context, todo []datasets.Instance) error {
	if s.Images == nil || len(todo) == 0 {
		return nil
	}
	return s.Images.CheckBudget(ctx, s.requests(todo))
}

// ImageName returns the name of the image of an instance's sandbox.
func ImageName(cfg *configs.Resolved, in datasets.Instance) string {
	return cmp.Or(cfg.Environment.Image, in.ImageName())
}
