package imagestore

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

// stateFile is the file that lists the images that mini processes pulled into an
// engine or built there. All processes access the file under a lock.
type stateFile struct {
	path string
}

// stateFormat is the version of the format.
const stateFormat = "mini-images-1"

// userExpiry is how long after its last use an image counts as used by a process whose
// state is unknown.
const userExpiry = 48 * time.Hour

// lockRetryInterval is how often to retry a file lock.
const lockRetryInterval = 20 * time.Millisecond

// state is the content of the file.
type state struct {
	Format string `json:"format"`
	// Pulled contains the images that mini pulled, by name, or by id if the name has
	// moved to another image.
	Pulled map[string]pulledImage `json:"pulled"`
}

// pulledImage is one image that mini pulled. mini may remove it only while the name
// refers to the same image.
type pulledImage struct {
	ID     string    `json:"id"`
	Digest string    `json:"digest,omitempty"`
	Pulled time.Time `json:"pulled"`
	Used   time.Time `json:"used"`
	// User identifies the process that most recently started to use the image, like
	// EngineInfo.Owner; empty after a process has stopped using the image.
	User string `json:"user,omitempty"`
	// Base is the name of the image that mini built this one from; empty for a pulled
	// image.
	Base string `json:"of,omitempty"`
}

func openStateFile(dir, engine string) (*stateFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create directory for image state: %w", err)
	}
	sum := sha256.Sum256([]byte(engine)) // an engine's id may contain any byte
	return &stateFile{path: filepath.Join(dir, hex.EncodeToString(sum[:8])+".json")}, nil
}

// update calls f with the state under the lock, and writes the state if f returns
// true, even with an error. Other processes wait meanwhile, so f must be fast: its only
// engine requests may look up or remove the names of one image.
func (sf *stateFile) update(ctx context.Context, f func(*state) (bool, error)) error {
	lock := flock.New(sf.path + ".lock")
	if _, err := lock.TryLockContext(ctx, lockRetryInterval); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("lock %s: %w", sf.path, err)
	}
	defer lock.Close() //nolint:errcheck // closing unlocks; nothing was written through it
	st, err := sf.read()
	if err != nil {
		return err
	}
	changed, err := f(&st)
	if !changed {
		return err
	}
	text, writeErr := json.MarshalIndent(st, "", " ")
	if writeErr == nil {
		writeErr = atomicfile.Write(sf.path, append(text, '\n'), 0o600)
	}
	if writeErr != nil {
		writeErr = fmt.Errorf("write image state: %w", writeErr)
	}
	return errors.Join(err, writeErr)
}

// load returns the current state.
func (sf *stateFile) load(ctx context.Context) (loaded state, err error) {
	err = sf.update(ctx, func(st *state) (bool, error) {
		loaded = *st
		return false, nil
	})
	return loaded, err
}

func (sf *stateFile) read() (state, error) {
	st := state{Format: stateFormat}
	text, err := os.ReadFile(sf.path)
	if err == nil {
		err = json.Unmarshal(text, &st)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return st, fmt.Errorf("read %s: %w", sf.path, err)
	case st.Format != stateFormat:
		return st, fmt.Errorf("read %s: written by another version of mini (%q, not %q)", sf.path, st.Format, stateFormat)
	}
	if st.Pulled == nil {
		st.Pulled = map[string]pulledImage{}
	}
	return st, nil
}

// add records that mini pulled an image, or built it from base. If the name referred to
// another image, the record of the other image is kept under that image's id.
func (st *state) add(name string, img Image, user, base string) {
	if old, ok := st.Pulled[name]; ok && old.ID != img.ID {
		st.Pulled[old.ID] = old
	}
	now := time.Now()
	st.Pulled[name] = pulledImage{ID: img.ID, Digest: img.Digest, Pulled: now, Used: now, User: user, Base: base}
}

// removeMissing removes from the state the images that were recorded before the engine
// was measured and that the engine does not have.
func (st *state) removeMissing(diskUsage DiskUsage, before state) (changed bool) {
	present := map[string]bool{}
	for _, img := range diskUsage.Images {
		present[img.ID] = true
	}
	for name, p := range st.Pulled {
		if old := before.Pulled[name]; !present[p.ID] && old.ID == p.ID && old.Pulled.Equal(p.Pulled) {
			delete(st.Pulled, name)
			changed = true
		}
	}
	return changed
}

// ownedImage is an image that mini may remove.
type ownedImage struct {
	ImageUsage
	refs     []string // names that mini recorded
	lastUsed time.Time
	base     string // image that mini built it from; empty if it was pulled
}

// ownedImages lists the images in s that mini pulled or built and that have no names
// except recorded ones. The least recently used image comes first.
func (st *state) ownedImages(s DiskUsage) []ownedImage {
	names := map[string][]string{}
	for name, p := range st.Pulled {
		names[p.ID] = append(names[p.ID], name)
	}
	var list []ownedImage
	for _, usage := range s.Images {
		refs := names[usage.ID]
		if len(refs) == 0 || slices.ContainsFunc(usage.Names, func(n string) bool { return !slices.Contains(refs, n) }) {
			continue
		}
		slices.Sort(refs)
		o := ownedImage{ImageUsage: usage, refs: refs}
		for _, name := range refs {
			if used := st.Pulled[name].Used; used.After(o.lastUsed) {
				o.lastUsed = used
			}
			o.base = st.Pulled[name].Base
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b ownedImage) int { return a.lastUsed.Compare(b.lastUsed) })
	return list
}

// isUsedByOthers reports whether another mini process uses an image, or may use it (see
// userExpiry).
func (st *state) isUsedByOthers(o ownedImage, info EngineInfo) bool {
	return slices.ContainsFunc(o.refs, func(ref string) bool {
		p := st.Pulled[ref]
		if p.User == "" || p.User == info.Owner {
			return false
		}
		alive, known := info.OwnerAlive(p.User)
		return alive || !known && time.Since(p.Used) < userExpiry
	})
}
