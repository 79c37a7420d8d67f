package dryrun

import (
	"context"
	"errors"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
)

// Images summarizes the images of the instances to run.
type Images struct {
	Distinct   int    `json:"distinct"`
	Local      int    `json:"local"`
	LocalBytes int64  `json:"local_bytes"` // shared layers counted for each image
	Pull       int    `json:"pull"`
	PullBytes  int64  `json:"pull_bytes_estimate"`
	Unknown    int    `json:"pull_unknown,omitempty"` // images to pull of unknown size
	FreeBytes  *int64 `json:"free_bytes"`             // on the engine's disk; null if unknown
	Problem    string `json:"problem,omitempty"`      // why the engine could not be asked
}

// estimatedImageSize is the assumed size on disk, in bytes, of an image whose size is unknown.
// The 500 official images of SWE-bench Verified take 240 GiB together, shared layers counted
// once (logicstar.ai, "How We Made SWE-Bench 50x Smaller").
const estimatedImageSize = 512 << 20

// compressionRatio is roughly the size of an image on disk divided by its compressed size.
const compressionRatio = 3

// MaxRegistryQueries is the maximum number of images that a dry run looks up in registries, to
// stay quick. mini images plan looks up all.
const MaxRegistryQueries = 32

// MeasureImages asks the container engine for local images and, for at most maxQueries images,
// registries for the others. An unreachable engine is reported in Problem.
func MeasureImages(ctx context.Context, cfg *configs.Resolved, needed []imagestore.Request, maxQueries int) Images {
	distinct := map[string]bool{}
	for _, n := range needed {
		distinct[n.Ref] = true
	}
	p := Images{Distinct: len(distinct)}
	plan, err := PlanImages(ctx, cfg, needed, len(distinct) <= maxQueries, false)
	if err != nil {
		p.Problem = err.Error()
		return p
	}
	p.Local, p.LocalBytes, p.Pull, p.Unknown, p.FreeBytes = plan.Present, plan.PresentBytes, plan.Pull, plan.Unknown, plan.FreeBytes
	p.PullBytes = plan.PullBytes*compressionRatio + int64(plan.Unknown)*estimatedImageSize
	return p
}

// PlanImages plans the pulls of the needed images. ask allows registry queries; sizes allows
// queries that count as pulls.
func PlanImages(ctx context.Context, cfg *configs.Resolved, needs []imagestore.Request, ask, sizes bool) (p imagestore.Plan, err error) {
	store, done, err := envopen.OpenImages(ctx, cfg, sizes, nil, func(e *docker.EngineConfig) {
		if !ask {
			e.Images.Registry = nil
		}
	})
	if err != nil {
		return p, err
	}
	p, err = store.Plan(ctx, needs)
	return p, errors.Join(err, done())
}
