package images

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

// Plan is what there is and what would be pulled.
type Plan struct {
	Images []Planned `json:"images"` // in the order in which they are needed first
	Here   int       `json:"here"`
	Pull   int       `json:"pull"`
	// HereBytes is what the images that are here take on disk, layers that
	// they share counted for each. PullBytes is what is to be fetched,
	// compressed, each layer once; Unknown counts images whose registry did
	// not say.
	HereBytes int64 `json:"here_bytes"`
	PullBytes int64 `json:"pull_bytes"`
	Unknown   int   `json:"pull_unknown"`
	// FreeBytes is the room on the engine's disk; nil where it is not known.
	FreeBytes *int64 `json:"free_bytes"`
	Budget    int64  `json:"image_budget,omitempty"`
	MinFree   int64  `json:"min_free_disk,omitempty"`
}

// Planned is one image of a Plan.
type Planned struct {
	Image     string   `json:"image"`
	Here      bool     `json:"here"`
	Bytes     int64    `json:"bytes,omitempty"`      // on disk, if it is here
	PullBytes *int64   `json:"pull_bytes,omitempty"` // to be fetched; nil where it is not known
	Digest    string   `json:"digest,omitempty"`
	Platforms []string `json:"platforms,omitempty"`
	Instances int      `json:"instances"` // that need it
	Problem   string   `json:"problem,omitempty"`
}

// Bounds of a plan: so many images are looked at side by side, and a registry
// that does not answer is given up after so long.
const (
	planAtOnce  = 8
	planTimeout = time.Minute
)

// Plan looks for images here and in their registries, and changes nothing. A
// registry that limits requests, or cannot be reached, is asked no further.
func (s *Store) Plan(ctx context.Context, needs []Need) (Plan, error) {
	p := Plan{Budget: s.cfg.Budget, MinFree: s.cfg.MinFree}
	index := map[string]int{}
	var distinct []Need
	for _, n := range needs {
		if i, ok := index[key(n.Ref, n.Platform)]; ok {
			p.Images[i].Instances++
			continue
		}
		index[key(n.Ref, n.Platform)] = len(distinct)
		distinct = append(distinct, n)
		p.Images = append(p.Images, Planned{Image: n.Ref, Instances: 1})
	}
	offers := make([]Offer, len(distinct))
	var silent sync.Map // registries that are asked no more
	asking, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	var looking errgroup.Group
	looking.SetLimit(planAtOnce)
	for i, n := range distinct {
		looking.Go(func() (err error) {
			offers[i], err = s.inspect(ctx, asking, n, &p.Images[i], &silent)
			return err
		})
	}
	if err := looking.Wait(); err != nil {
		return p, err
	}
	s.add(&p, offers)
	return p, nil
}

// inspect finds out about one image.
func (s *Store) inspect(ctx, asking context.Context, n Need, item *Planned, silent *sync.Map) (Offer, error) {
	name, err := Name(n.Ref)
	if err != nil {
		item.Problem = "this is not the name of an image"
		return Offer{}, nil //nolint:nilerr // it is in the plan
	}
	img, here, err := s.find(ctx, name, n.Platform)
	if err != nil {
		return Offer{}, err
	}
	if here {
		item.Here, item.Bytes, item.Digest = true, img.Size, img.Digest
		item.Platforms = []string{"linux/" + img.Arch}
		return Offer{}, nil
	}
	registry := registryOf(name)
	if _, quiet := silent.Load(registry); quiet || s.cfg.Registry == nil {
		return Offer{}, nil
	}
	offer, err := s.cfg.Registry.Ask(asking, name, s.platform(n))
	refusal, _ := errors.AsType[*Refusal](err)
	switch {
	case ctx.Err() != nil:
		return Offer{}, context.Cause(ctx)
	case refusal != nil && (refusal.Status == 404 || refusal.Status == 401 || refusal.Status == 403):
		item.Problem = "the registry has no such image, or does not show it without docker login"
	case refusal != nil && refusal.Limited():
		silent.Store(registry, true)
		item.Problem = "the registry limits requests"
	case err != nil:
		silent.Store(registry, true)
		item.Problem = "not asked: " + text.Clip(text.FirstLine(err.Error()), 200)
	default:
		if err := s.suits(n, offer); err != nil {
			item.Problem = problemOf(err)
		}
	}
	item.Digest, item.Platforms = offer.Digest, offer.Platforms
	return offer, nil
}

// problemOf is an error without what was being done.
func problemOf(err error) string {
	if e, ok := errors.AsType[*env.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// add sums up. What several images to be pulled have in common counts for the
// first.
func (s *Store) add(p *Plan, offers []Offer) {
	s.mu.Lock()
	seen := make(map[string]bool, len(s.layers))
	for content := range s.layers {
		seen[content] = true
	}
	s.mu.Unlock()
	for i := range p.Images {
		item := &p.Images[i]
		if item.Here {
			p.Here++
			p.HereBytes += item.Bytes
			continue
		}
		p.Pull++
		if len(offers[i].Layers) == 0 {
			p.Unknown++
			continue
		}
		var n int64
		for _, l := range offers[i].Layers {
			if !seen[l.Content] {
				seen[l.Content] = true
				n += l.Bytes
			}
		}
		item.PullBytes = &n
		p.PullBytes += n
	}
	if s.host.Free != nil {
		if free, known := s.host.Free(); known {
			p.FreeBytes = &free
		}
	}
}

// CheckBudget finds out before anything is started whether one of the images
// that are needed first is larger than the budget. What the registry does not
// tell is no error: the pull will.
func (s *Store) CheckBudget(ctx context.Context, needs []Need) error {
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
			return s.tooBig(item.Image, "at least "+size(*item.PullBytes))
		}
	}
	return nil
}
