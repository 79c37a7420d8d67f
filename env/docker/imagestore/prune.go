package imagestore

import (
	"context"
	"errors"
	"slices"
	"time"
)

// PruneResult is the result of Prune.
type PruneResult struct {
	Images []PrunedImage `json:"images"`
	// Freed is the number of bytes freed; in a dry run, the sum of Bytes of the images
	// that would be removed.
	Freed  int64 `json:"freed_bytes"`
	DryRun bool  `json:"dry_run,omitempty"`
}

// PrunedImage is one image that mini pulled or built.
type PrunedImage struct {
	Image      string    `json:"image"`
	Base       string    `json:"of,omitempty"` // the image that mini built it from; empty if it was pulled
	ID         string    `json:"id"`
	Bytes      int64     `json:"bytes"`   // of layers that no other image uses
	LastUsed   time.Time `json:"used"`    // last use by mini
	Removed    bool      `json:"removed"` // in a dry run: would be removed
	KeptReason string    `json:"kept,omitempty"`
	Err        string    `json:"error,omitempty"`
}

// Prune removes the images that mini pulled or built, except those needed or in use.
// It does not touch other images, nor images whose names changed. With dryRun it
// only reports what it would remove.
func (s *Store) Prune(ctx context.Context, needed []Request, dryRun bool) (PruneResult, error) {
	keep := map[string]bool{}
	for _, req := range needed {
		if name, err := NormalizeName(req.Ref); err == nil {
			keep[name] = true
		}
	}
	p := PruneResult{Images: []PrunedImage{}, DryRun: dryRun}
	before, err := s.measure(ctx)
	if err != nil {
		return p, err
	}
	removed := false
	for _, o := range before.list {
		item := PrunedImage{Image: o.refs[0], Base: o.base, ID: o.ID, Bytes: o.Size - o.Shared, LastUsed: o.lastUsed}
		item.KeptReason = s.keepReason(o, keep, &before.state)
		switch {
		case item.KeptReason != "":
		case dryRun:
			item.Removed = true
			p.Freed += item.Bytes
		default:
			err := s.stateFile.update(ctx, func(st *state) (bool, error) {
				if item.KeptReason = s.keepReason(o, keep, st); item.KeptReason != "" {
					return false, nil
				}
				return true, s.removeNames(ctx, st, o)
			})
			switch {
			case errors.Is(err, errRetagged):
				item.KeptReason = "its name refers to another image now"
			case errors.Is(err, ErrInUse):
				item.KeptReason = "a container or another image uses it"
			case err != nil:
				item.Err = err.Error()
			case item.KeptReason == "":
				item.Removed, removed = true, true
			}
		}
		p.Images = append(p.Images, item)
	}
	if !removed {
		return p, nil
	}
	s.clearLayers()
	after, err := s.engine.DiskUsage(ctx)
	p.Freed = max(before.diskUsage.Bytes-after.Bytes, 0)
	return p, err
}

// keepReason returns why Prune keeps an image; empty if it may be removed.
func (s *Store) keepReason(o ownedImage, needed map[string]bool, st *state) string {
	switch {
	case needed[o.base], slices.ContainsFunc(o.refs, func(ref string) bool { return needed[ref] }):
		return "it is needed"
	case o.InUse:
		return "a container uses it"
	case st.isUsedByOthers(o, s.host):
		return "another mini process uses it"
	}
	return ""
}
