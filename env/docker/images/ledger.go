package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
)

// ledger is the file in which minis remember what they pulled into an engine,
// and say what they need. Every use of it is under a lock that all share.
type ledger struct {
	path string
}

// ledgerFormat is the version of the file. Another one is not understood, and
// left as it is: the mini that wrote it still counts on it.
const ledgerFormat = "mini-images-1"

// maxLedger bounds the file, in bytes: some ten thousand images.
const maxLedger = 16 << 20

// staleLease is when a lease counts no more whose owner cannot be asked after.
const staleLease = 48 * time.Hour

// record is what is in the ledger.
type record struct {
	Format string `json:"format"`
	// Pulled are the images that mini pulled, by name, or by id where the name
	// has moved on to another image.
	Pulled map[string]pulled `json:"pulled"`
	// Leases are what each running mini needs, by owner.
	Leases map[string]lease `json:"leases,omitempty"`
}

// pulled is one image that mini pulled. It is mini's only as long as the name
// means the same image.
type pulled struct {
	ID     string    `json:"id"`
	Digest string    `json:"digest,omitempty"`
	Pulled time.Time `json:"pulled"`
	Used   time.Time `json:"used"`
	// Of is the name of the image that mini made this one from; empty for one that
	// it pulled.
	Of string `json:"of,omitempty"`
}

// lease is what one mini needs now or soon.
type lease struct {
	Refs []string  `json:"refs"`
	Seen time.Time `json:"seen"`
}

func newLedger(dir, engine string) (*ledger, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("remember images: %w", err)
	}
	sum := sha256.Sum256([]byte(engine)) // an engine's id may hold anything
	return &ledger{path: filepath.Join(dir, hex.EncodeToString(sum[:8])+".json")}, nil
}

// lockPoll is how often a lock that is held is tried again.
const lockPoll = 20 * time.Millisecond

// with runs f on the record, under the lock, and writes what it leaves when it
// returns true. Others wait meanwhile, so that what f finds stays true; so f
// asks the engine for nothing that may take long, but to remove one image.
func (l *ledger) with(ctx context.Context, f func(*record) (bool, error)) error {
	lock := flock.New(l.path + ".lock")
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	defer lock.Close() //nolint:errcheck // closing unlocks; nothing was written through it
	r, err := l.read()
	if err != nil {
		return err
	}
	changed, err := f(&r)
	if !changed {
		return err
	}
	text, jerr := json.MarshalIndent(r, "", " ")
	if jerr == nil {
		jerr = renameio.WriteFile(l.path, append(text, '\n'), 0o600)
	}
	if jerr != nil {
		jerr = fmt.Errorf("remember images: %w", jerr)
	}
	return errors.Join(err, jerr)
}

// look is what is in the record now.
func (l *ledger) look(ctx context.Context) (now record, err error) {
	err = l.with(ctx, func(r *record) (bool, error) {
		now = *r // nobody else has it
		return false, nil
	})
	return now, err
}

// read takes a damaged file for an empty one, and moves it away: what is
// forgotten is never removed, which is the safe side.
func (l *ledger) read() (record, error) {
	empty := record{Format: ledgerFormat, Pulled: map[string]pulled{}, Leases: map[string]lease{}}
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("read %s: %w", l.path, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxLedger+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return empty, fmt.Errorf("read %s: %w", l.path, err)
	}
	r := empty
	damaged := len(text) > maxLedger || json.Unmarshal(text, &r) != nil
	if format := formatOf(text); format != ledgerFormat && format != "" {
		return empty, fmt.Errorf("read %s: another version of mini wrote it (%q, not %q); use that one, or move the file away", l.path, format, ledgerFormat)
	}
	if damaged {
		if err := os.Rename(l.path, l.path+".damaged"); err != nil {
			return empty, fmt.Errorf("move a damaged file away: %w", err)
		}
		return record{Format: ledgerFormat, Pulled: map[string]pulled{}, Leases: map[string]lease{}}, nil
	}
	if r.Pulled == nil {
		r.Pulled = map[string]pulled{}
	}
	if r.Leases == nil {
		r.Leases = map[string]lease{}
	}
	return r, nil
}

// formatOf is what a file says it is, though the rest may not be understood;
// empty where it says nothing.
func formatOf(text []byte) string {
	var r struct {
		Format string `json:"format"`
	}
	if json.Unmarshal(text, &r) != nil || len(r.Format) > 100 {
		return ""
	}
	return r.Format
}

// remember notes that mini pulled an image. One that had the name before is
// kept by its id.
func (r *record) remember(name string, img Image, now time.Time) {
	if old, ok := r.Pulled[name]; ok && old.ID != img.ID {
		r.Pulled[old.ID] = old
	}
	r.Pulled[name] = pulled{ID: img.ID, Digest: img.Digest, Pulled: now, Used: now}
}

// pulledID says that mini pulled the image with this id.
func (r *record) pulledID(id string) bool {
	for _, p := range r.Pulled {
		if p.ID == id {
			return true
		}
	}
	return false
}

// leased are the names that other living minis need. Leases of the dead are
// dropped; what is said of changes is whether there were any.
func (r *record) leased(h Host, now time.Time) (refs map[string]bool, changed bool) {
	refs = map[string]bool{}
	for owner, l := range r.Leases {
		if owner == h.Owner {
			continue
		}
		alive, known := h.Living(owner)
		if known && !alive || !known && now.Sub(l.Seen) > staleLease {
			delete(r.Leases, owner)
			changed = true
			continue
		}
		for _, ref := range l.Refs {
			refs[ref] = true
		}
	}
	return refs, changed
}

// ours are the images that mini pulled and that are as they were: the name
// means the same image, which has no name that mini did not give it.
func (r *record) ours(s Stock) []own {
	byID := map[string]Holding{}
	for _, h := range s.Images {
		byID[h.ID] = h
	}
	names := map[string][]string{}
	for name, p := range r.Pulled {
		names[p.ID] = append(names[p.ID], name)
	}
	var list []own
	for id, mine := range names {
		h, here := byID[id]
		if !here || slices.ContainsFunc(h.Names, func(n string) bool { return !slices.Contains(mine, n) }) {
			continue
		}
		slices.Sort(mine)
		o := own{Holding: h, refs: mine}
		for _, name := range mine {
			if used := r.Pulled[name].Used; used.After(o.used) {
				o.used = used
			}
			o.of = r.Pulled[name].Of
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b own) int { return a.used.Compare(b.used) })
	return list
}

// own is an image that mini may remove.
type own struct {
	Holding
	refs []string // the names mini gave it
	used time.Time
	of   string // what mini made it from; empty if it was pulled
}

// is says whether one of its names is in a set.
func (o own) is(set map[string]bool) bool {
	return slices.ContainsFunc(o.refs, func(ref string) bool { return set[ref] })
}
