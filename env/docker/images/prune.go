package images

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Pruned is what a prune did, or would do.
type Pruned struct {
	Images []PrunedImage `json:"images"`
	// Freed is how many bytes the engine's layers take less than before; in a
	// dry run, what the images have to themselves.
	Freed  int64 `json:"freed_bytes"`
	DryRun bool  `json:"dry_run,omitempty"`
}

// PrunedImage is one image that mini pulled.
type PrunedImage struct {
	Image   string    `json:"image"`
	Of      string    `json:"of,omitempty"` // the image that mini made it from, where it did not pull it
	ID      string    `json:"id"`
	Bytes   int64     `json:"bytes"`   // that it has to itself
	Used    time.Time `json:"used"`    // last, by mini
	Removed bool      `json:"removed"` // or would be
	Kept    string    `json:"kept,omitempty"`
	Err     string    `json:"error,omitempty"`
}

// Prune removes the images that mini pulled, but for those that are needed or
// in use. Others are not touched, nor is one that got another name or whose
// name got another image. With dry it only says what it would do.
func (s *Store) Prune(ctx context.Context, needed []Need, dry bool) (Pruned, error) {
	keep := map[string]bool{}
	for _, n := range needed {
		if name, err := Name(n.Ref); err == nil {
			keep[name] = true
		}
	}
	p := Pruned{Images: []PrunedImage{}, DryRun: dry}
	before, err := s.measure(ctx)
	if err != nil {
		return p, err
	}
	removed := false
	for _, o := range before.list {
		item := PrunedImage{Image: o.refs[0], Of: o.of, ID: o.ID, Bytes: o.Size - o.Shared, Used: o.used}
		item.Kept = s.kept(o, keep, &before.record)
		switch {
		case item.Kept != "":
		case dry:
			item.Removed = true
			p.Freed += item.Bytes
		default:
			err := s.memory.with(ctx, func(r *record) (bool, error) {
				if item.Kept = s.kept(o, keep, r); item.Kept != "" {
					return false, nil
				}
				return true, s.removeNow(ctx, r, o)
			})
			switch {
			case errors.Is(err, errMoved):
				item.Kept = "its name has got another image"
			case errors.Is(err, ErrInUse):
				item.Kept = "a container or another image uses it"
			case err != nil:
				item.Err = err.Error()
			case item.Kept == "":
				item.Removed, removed = true, true
			}
		}
		p.Images = append(p.Images, item)
	}
	if !removed {
		return p, nil
	}
	s.forgetLayers()
	after, err := s.engine.Stock(ctx, nil)
	p.Freed = max(before.stock.Bytes-after.Bytes, 0)
	return p, err
}

// kept says why an image stays; empty where it need not.
func (s *Store) kept(o own, needed map[string]bool, r *record) string {
	switch {
	case needed[o.of], slices.ContainsFunc(o.refs, func(ref string) bool { return needed[ref] }):
		return "it is needed"
	case o.InUse:
		return "a container uses it"
	case r.usedByOthers(o, s.host):
		return "another mini needs it"
	}
	return ""
}
