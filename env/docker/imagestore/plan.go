package imagestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
)

// Plan lists the images that are present and those to pull.
type Plan struct {
	Images       []PlannedImage `json:"images"` // in the order of first use
	PresentCount int            `json:"here"`   // number of present images
	Pull         int            `json:"pull"`   // number of other images, also those with a Problem
	// PresentBytes is the size on disk of the present images; shared layers count
	// for each image. PullBytes is the compressed size of the layers to download, each
	// layer once. Unknown is the number of images to pull whose size is unknown.
	PresentBytes int64 `json:"here_bytes"`
	PullBytes    int64 `json:"pull_bytes"`
	Unknown      int   `json:"pull_unknown"`
	// FreeBytes is the free space on the engine's disk; nil if unknown.
	FreeBytes *int64 `json:"free_bytes"`
	Budget    int64  `json:"image_budget,omitempty"`
	MinFree   int64  `json:"min_free_disk,omitempty"`
}

// PlannedImage is one image of a Plan.
type PlannedImage struct {
	Image     string   `json:"image"`
	Present   bool     `json:"here"`
	Bytes     int64    `json:"bytes,omitempty"`      // on disk, if present
	PullBytes *int64   `json:"pull_bytes,omitempty"` // to download; nil if unknown
	Digest    string   `json:"digest,omitempty"`
	Platforms []string `json:"platforms,omitempty"`
	Instances int      `json:"instances"` // number of requests for it
	Problem   string   `json:"problem,omitempty"`
}

const (
	planConcurrency = 8           // images inspected at the same time
	planTimeout     = time.Minute // for the requests to all registries together
)

// Plan looks up images in the engine, and those that the engine lacks in their
// registries. It pulls and removes nothing. If a registry limits requests or fails, Plan
// does not ask that registry again.
func (s *Store) Plan(ctx context.Context, needs []Request) (Plan, error) {
	p := Plan{Budget: s.cfg.Budget, MinFree: s.cfg.MinFree}
	index := map[string]int{}
	var distinct []Request
	for _, req := range needs {
		if i, ok := index[pullKey(req.Ref, req.Platform)]; ok {
			p.Images[i].Instances++
			continue
		}
		index[pullKey(req.Ref, req.Platform)] = len(distinct)
		distinct = append(distinct, req)
		p.Images = append(p.Images, PlannedImage{Image: req.Ref, Instances: 1})
	}
	remotes := make([]RemoteImage, len(distinct))
	var failedRegistries sync.Map // registries not to ask again
	registryCtx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(planConcurrency)
	for i, req := range distinct {
		g.Go(func() (err error) {
			remotes[i], err = s.inspect(ctx, registryCtx, req, &p.Images[i], &failedRegistries)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return p, err
	}
	s.addTotals(&p, remotes)
	return p, nil
}

// inspect fills in the plan for one image. It returns the registry's description if the
// image is not present.
func (s *Store) inspect(ctx, registryCtx context.Context, req Request, item *PlannedImage, failedRegistries *sync.Map) (RemoteImage, error) {
	name, err := NormalizeName(req.Ref)
	if err != nil {
		item.Problem = "not a valid image name"
		return RemoteImage{}, nil //nolint:nilerr // item.Problem has it
	}
	img, present, err := s.find(ctx, name, req.Platform)
	if err != nil {
		return RemoteImage{}, err
	}
	if present {
		item.Present, item.Bytes, item.Digest = true, img.Size, img.Digest
		item.Platforms = []string{"linux/" + img.Arch}
		return RemoteImage{}, nil
	}
	registry := registryHost(name)
	if _, skip := failedRegistries.Load(registry); skip || s.cfg.Registry == nil {
		return RemoteImage{}, nil
	}
	remote, err := s.cfg.Registry.Inspect(registryCtx, name, s.platform(req))
	regErr, _ := errors.AsType[*RegistryError](err)
	switch {
	case ctx.Err() != nil:
		return RemoteImage{}, context.Cause(ctx)
	case regErr != nil && (regErr.Status == 404 || regErr.Status == 401 || regErr.Status == 403):
		item.Problem = "the registry has no such image, or requires docker login"
	case regErr != nil && regErr.IsRateLimited():
		failedRegistries.Store(registry, true)
		item.Problem = "the registry limits requests"
	case err != nil:
		failedRegistries.Store(registry, true)
		item.Problem = "registry not checked: " + text.Clip(text.FirstLine(err.Error()), 200)
	default:
		if err := s.checkPlatform(req, remote); err != nil {
			item.Problem = cause(err)
		}
	}
	item.Digest, item.Platforms = remote.Digest, remote.Platforms
	return remote, nil
}

// cause returns the text of an error without its operation.
func cause(err error) string {
	if e, ok := errors.AsType[*env.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// addTotals computes the totals. A layer that several images to pull share counts for
// the first of them.
func (s *Store) addTotals(p *Plan, remotes []RemoteImage) {
	s.mu.Lock()
	seen := make(map[string]bool, len(s.layers))
	for diffID := range s.layers {
		seen[diffID] = true
	}
	s.mu.Unlock()
	for i := range p.Images {
		item := &p.Images[i]
		if item.Present {
			p.PresentCount++
			p.PresentBytes += item.Bytes
			continue
		}
		p.Pull++
		if len(remotes[i].Layers) == 0 {
			p.Unknown++
			continue
		}
		var n int64
		for _, l := range remotes[i].Layers {
			if !seen[l.DiffID] {
				seen[l.DiffID] = true
				n += l.Bytes
			}
		}
		item.PullBytes = &n
		p.PullBytes += n
	}
	if s.host.FreeDisk != nil {
		if free, known := s.host.FreeDisk(); known {
			p.FreeBytes = &free
		}
	}
}

// CheckBudget returns an error if one of the images needed first, at most Config.Prefetch
// but at least one, has a download larger than the budget. It ignores images of unknown
// size; if they are too large, their pull fails later.
func (s *Store) CheckBudget(ctx context.Context, needs []Request) error {
	if s.cfg.Budget == 0 {
		return nil
	}
	first := needs[:min(len(needs), max(s.cfg.Prefetch, 1))]
	p, err := s.Plan(ctx, first)
	if err != nil {
		return fmt.Errorf("check the image budget: %w", err)
	}
	for _, item := range p.Images {
		if item.PullBytes != nil && *item.PullBytes > s.cfg.Budget {
			return s.tooLargeError(item.Image, "at least "+unit.Size(*item.PullBytes))
		}
	}
	return nil
}
