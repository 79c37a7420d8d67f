package dryrun

import (
	"context"
	"errors"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
)

// Images summarizes the images of the instances to run. Distinct, Local and Pull are numbers of
// images.
type Images struct {
	Distinct   int    `json:"distinct"`
	Local      int    `json:"local"`
	LocalBytes int64  `json:"local_bytes"` // shared layers are counted for each image
	Pull       int    `json:"pull"`
	PullBytes  int64  `json:"pull_bytes_estimate"`    // estimated size on disk of the images to pull
	Unknown    int    `json:"pull_unknown,omitempty"` // number of images to pull whose size is unknown
	FreeBytes  *int64 `json:"free_bytes"`             // on the engine's disk; null if unknown
	Problem    string `json:"problem,omitempty"`      // why the engine could not be queried
}

// estimatedImageSize is the assumed size on disk, in bytes, of an image whose size is unknown.
// The 500 official images of SWE-bench Verified take 240 GiB together, shared layers counted
// once (logicstar.ai, "How We Made SWE-Bench 50x Smaller").
const estimatedImageSize = 512 << 20

// compressionRatio is roughly the size of an image on disk divided by its compressed size.
const compressionRatio = 3

// MaxRegistryQueries is the largest number of images for which a dry run queries registries. With
// more images a dry run queries no registry, to stay quick; mini images plan always queries them.
const MaxRegistryQueries = 32

// MeasureImages asks the container engine for the local images, and registries for the sizes of
// the others. If there are more than maxQueries distinct images, it queries no registry and assumes
// estimatedImageSize. On an error, for example if the engine is unreachable, it sets Problem.
func MeasureImages(ctx context.Context, cfg *configs.Resolved, needed []imagestore.Request, maxQueries int) Images {
	distinct := map[string]bool{}
	for _, request := range needed {
		distinct[request.Ref] = true
	}
	images := Images{Distinct: len(distinct)}
	plan, err := PlanImages(ctx, cfg, needed, len(distinct) <= maxQueries, false)
	if err != nil {
		images.Problem = err.Error()
		return images
	}
	images.Local, images.LocalBytes, images.Pull, images.Unknown, images.FreeBytes = plan.PresentCount, plan.PresentBytes, plan.Pull, plan.Unknown, plan.FreeBytes
	images.PullBytes = plan.PullBytes*compressionRatio + int64(plan.Unknown)*estimatedImageSize
	return images
}

// PlanImages plans the pulls of the needed images. useRegistry allows registry queries; querySizes
// also allows queries that registries count as pulls.
func PlanImages(ctx context.Context, cfg *configs.Resolved, needed []imagestore.Request, useRegistry, querySizes bool) (p imagestore.Plan, err error) {
	store, closeStore, err := envopen.OpenImages(ctx, cfg, querySizes, nil, func(config *docker.EngineConfig) {
		if !useRegistry {
			config.Images.Registry = nil
		}
	})
	if err != nil {
		return p, err
	}
	p, err = store.Plan(ctx, needed)
	return p, errors.Join(err, closeStore())
}
