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
)

// Plan lists the images that are present and those to pull.
type Plan struct {
	Images  []PlannedImage `json:"images"` // in the order of first use
	Present int            `json:"here"`
	Pull    int            `json:"pull"`
	// PresentBytes is the size on disk of the present images; shared layers count
	// for each image. PullBytes is the compressed size of the layers to download, each
	// counted once. Unknown is the number of images of unknown size.
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
	planTimeout     = time.Minute // for all registries
)

// Plan looks up images in the engine and in their registries, and changes nothing.
// After a rate limit or a connection error it does not ask a registry again.
func (s *Store) Plan(ctx context.Context, needs []Request) (Plan, error) {
	p := Plan{Budget: s.cfg.Budget, MinFree: s.cfg.MinFree}
	index := map[string]int{}
	var distinct []Request
	for _, n := range needs {
		if i, ok := index[pullKey(n.Ref, n.Platform)]; ok {
			p.Images[i].Instances++
			continue
		}
		index[pullKey(n.Ref, n.Platform)] = len(distinct)
		distinct = append(distinct, n)
		p.Images = append(p.Images, PlannedImage{Image: n.Ref, Instances: 1})
	}
	offers := make([]RemoteImage, len(distinct))
	var failed sync.Map // registries not to ask again
	registryCtx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(planConcurrency)
	for i, n := range distinct {
		g.Go(func() (err error) {
			offers[i], err = s.inspect(ctx, registryCtx, n, &p.Images[i], &failed)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return p, err
	}
	s.add(&p, offers)
	return p, nil
}

// inspect fills in the plan for one image.
func (s *Store) inspect(ctx, registryCtx context.Context, n Request, item *PlannedImage, failed *sync.Map) (RemoteImage, error) {
	name, err := NormalizeName(n.Ref)
	if err != nil {
		item.Problem = "not a valid image name"
		return RemoteImage{}, nil //nolint:nilerr // item.Problem has it
	}
	img, here, err := s.find(ctx, name, n.Platform)
	if err != nil {
		return RemoteImage{}, err
	}
	if here {
		item.Present, item.Bytes, item.Digest = true, img.Size, img.Digest
		item.Platforms = []string{"linux/" + img.Arch}
		return RemoteImage{}, nil
	}
	registry := registryHost(name)
	if _, skip := failed.Load(registry); skip || s.cfg.Registry == nil {
		return RemoteImage{}, nil
	}
	offer, err := s.cfg.Registry.Inspect(registryCtx, name, s.platform(n))
	refusal, _ := errors.AsType[*RegistryError](err)
	switch {
	case ctx.Err() != nil:
		return RemoteImage{}, context.Cause(ctx)
	case refusal != nil && (refusal.Status == 404 || refusal.Status == 401 || refusal.Status == 403):
		item.Problem = "the registry has no such image, or requires docker login"
	case refusal != nil && refusal.IsRateLimited():
		failed.Store(registry, true)
		item.Problem = "the registry limits requests"
	case err != nil:
		failed.Store(registry, true)
		item.Problem = "registry not checked: " + text.Clip(text.FirstLine(err.Error()), 200)
	default:
		if err := s.checkPlatform(n, offer); err != nil {
			item.Problem = cause(err)
		}
	}
	item.Digest, item.Platforms = offer.Digest, offer.Platforms
	return offer, nil
}

// cause returns the text of an error without its operation.
func cause(err error) string {
	if e, ok := errors.AsType[*env.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// add computes the totals. A layer of several images counts for the first one.
func (s *Store) add(p *Plan, offers []RemoteImage) {
	s.mu.Lock()
	seen := make(map[string]bool, len(s.layers))
	for content := range s.layers {
		seen[content] = true
	}
	s.mu.Unlock()
	for i := range p.Images {
		item := &p.Images[i]
		if item.Present {
			p.Present++
			p.PresentBytes += item.Bytes
			continue
		}
		p.Pull++
		if len(offers[i].Layers) == 0 {
			p.Unknown++
			continue
		}
		var n int64
		for _, l := range offers[i].Layers {
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

// CheckBudget reports whether one of the images needed first is larger than the
// budget, before anything starts. If the size is unknown, it returns nil; the pull
// fails later.
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
			return s.tooLargeError(item.Image, "at least "+size(*item.PullBytes))
		}
	}
	return nil
}
