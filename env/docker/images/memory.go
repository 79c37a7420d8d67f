package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/internal/atomicfile"
)

// memory is the file in which minis note what they pulled into an engine. Every
// use of it is under a lock that all share.
type memory struct {
	path string
}

// memoryFormat is the version of the file.
const memoryFormat = "mini-images-1"

// staleUser is when a user counts no more who cannot be asked after.
const staleUser = 48 * time.Hour

// lockPoll is how often a lock that is held is tried again.
const lockPoll = 20 * time.Millisecond

// record is what is in the file.
type record struct {
	Format string `json:"format"`
	// Pulled are the images that mini pulled, by name, or by id where the name
	// has moved on to another image.
	Pulled map[string]pulled `json:"pulled"`
}

// pulled is one image that mini pulled. It is mini's only as long as the name
// means the same image.
type pulled struct {
	ID     string    `json:"id"`
	Digest string    `json:"digest,omitempty"`
	Pulled time.Time `json:"pulled"`
	Used   time.Time `json:"used"`
	// User is the mini that came to need it last, and still does; empty for none.
	User string `json:"user,omitempty"`
	// Of is the name of the image that mini made this one from; empty for one that
	// it pulled.
	Of string `json:"of,omitempty"`
}

func newMemory(dir, engine string) (*memory, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("remember images: %w", err)
	}
	sum := sha256.Sum256([]byte(engine)) // an engine's id may hold anything
	return &memory{path: filepath.Join(dir, hex.EncodeToString(sum[:8])+".json")}, nil
}

// with runs f on the record, under the lock, and writes what it leaves when it
// returns true. Others wait meanwhile, so that what f finds stays true; so f
// asks the engine for nothing that may take long, but to remove one image.
func (m *memory) with(ctx context.Context, f func(*record) (bool, error)) error {
	lock := flock.New(m.path + ".lock")
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("lock %s: %w", m.path, err)
	}
	defer lock.Close() //nolint:errcheck // closing unlocks; nothing was written through it
	r, err := m.read()
	if err != nil {
		return err
	}
	changed, err := f(&r)
	if !changed {
		return err
	}
	text, jerr := json.MarshalIndent(r, "", " ")
	if jerr == nil {
		jerr = atomicfile.Write(m.path, append(text, '\n'), 0o600)
	}
	if jerr != nil {
		jerr = fmt.Errorf("remember images: %w", jerr)
	}
	return errors.Join(err, jerr)
}

// look is what is in the record now.
func (m *memory) look(ctx context.Context) (now record, err error) {
	err = m.with(ctx, func(r *record) (bool, error) {
		now = *r // nobody else has it
		return false, nil
	})
	return now, err
}

func (m *memory) read() (record, error) {
	r := record{Format: memoryFormat}
	text, err := os.ReadFile(m.path)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return r, fmt.Errorf("read %s: %w", m.path, err)
	case r.Format != memoryFormat:
		return r, fmt.Errorf("read %s: another version of mini wrote it (%q, not %q)", m.path, r.Format, memoryFormat)
	}
	if r.Pulled == nil {
		r.Pulled = map[string]pulled{}
	}
	return r, nil
}

// remember notes that mini pulled an image. One that had the name before is
// kept by its id.
func (r *record) remember(name string, img Image, user, of string) {
	if old, ok := r.Pulled[name]; ok && old.ID != img.ID {
		r.Pulled[old.ID] = old
	}
	now := time.Now()
	r.Pulled[name] = pulled{ID: img.ID, Digest: img.Digest, Pulled: now, Used: now, User: user, Of: of}
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

// forget drops what was known before the engine was measured, and was not there.
func (r *record) forget(stock Stock, before record) (changed bool) {
	here := map[string]bool{}
	for _, h := range stock.Images {
		here[h.ID] = true
	}
	for name, p := range r.Pulled {
		if old := before.Pulled[name]; !here[p.ID] && old.ID == p.ID && old.Pulled.Equal(p.Pulled) {
			delete(r.Pulled, name)
			changed = true
		}
	}
	return changed
}

// own is an image that mini may remove.
type own struct {
	Holding
	refs []string // the names mini gave it
	used time.Time
	of   string // what mini made it from; empty if it was pulled
}

// ours are the images that mini pulled and that are as they were: the name
// means the same image, which has no name that mini did not give it. The one that
// was used longest ago comes first.
func (r *record) ours(s Stock) []own {
	names := map[string][]string{}
	for name, p := range r.Pulled {
		names[p.ID] = append(names[p.ID], name)
	}
	var list []own
	for _, h := range s.Images {
		mine := names[h.ID]
		if len(mine) == 0 || slices.ContainsFunc(h.Names, func(n string) bool { return !slices.Contains(mine, n) }) {
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

// usedByOthers says that a mini other than this one needs an image.
func (r *record) usedByOthers(o own, h Host) bool {
	return slices.ContainsFunc(o.refs, func(ref string) bool {
		p := r.Pulled[ref]
		if p.User == "" || p.User == h.Owner {
			return false
		}
		alive, known := h.Living(p.User)
		return alive || !known && time.Since(p.Used) < staleUser
	})
}
