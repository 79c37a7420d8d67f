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
	err := s.ledger.with(ctx, func(r *record) (bool, error) {
		before, err := s.engine.Stock(ctx, nil)
		if err != nil {
			return false, err
		}
		others, changed := r.leased(s.host, time.Now())
		changed = r.forget(before) || changed
		for _, o := range r.ours(before) {
			item := PrunedImage{Image: o.refs[0], ID: o.ID, Bytes: o.Size - o.Shared, Used: o.used}
			is := func(set map[string]bool) bool {
				return slices.ContainsFunc(o.refs, func(ref string) bool { return set[ref] })
			}
			switch {
			case is(keep):
				item.Kept = "it is needed"
			case o.InUse:
				item.Kept = "a container uses it"
			case is(others):
				item.Kept = "another mini needs it"
			case dry:
				item.Removed = true
				p.Freed += item.Bytes
			default:
				err := s.remove(ctx, r, o)
				changed = true
				switch {
				case err == nil:
					item.Removed = true
				case errors.Is(err, ErrInUse):
					item.Kept = "a container or another image uses it"
				default:
					item.Err = err.Error()
				}
			}
			p.Images = append(p.Images, item)
		}
		if dry || !slices.ContainsFunc(p.Images, func(i PrunedImage) bool { return i.Removed }) {
			return changed, nil
		}
		s.forgetLayers()
		after, err := s.engine.Stock(ctx, nil)
		p.Freed = max(before.Bytes-after.Bytes, 0)
		return changed, err
	})
	return p, err
}
