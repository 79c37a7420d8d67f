package repository

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hash is an object's name; that of a repository with SHA-1 ends with zeros.
type hash [32]byte

// hashes is a sorted list.
type hashes []hash

func parseHash(line []byte) (h hash, ok bool) {
	if i := bytes.IndexByte(line, ' '); i >= 0 {
		line = line[:i]
	}
	if len(line) != 40 && len(line) != 64 {
		return h, false
	}
	_, err := hex.Decode(h[:], line)
	return h, err == nil
}

func compareHashes(a, b hash) int { return bytes.Compare(a[:], b[:]) }

func (all hashes) has(h hash) bool {
	_, ok := slices.BinarySearchFunc(all, h, compareHashes)
	return ok
}

func sorted(all []hash) hashes {
	slices.SortFunc(all, compareHashes)
	return slices.Compact(all)
}

// without counts the hashes that b lacks, and calls fn, unless it is nil, with each.
func (all hashes) without(b hashes, fn func(hash)) (n int) {
	for _, h := range all {
		for len(b) > 0 && compareHashes(b[0], h) < 0 {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != h {
			n++
			if fn != nil {
				fn(h)
			}
		}
	}
	return n
}

// history returns the commits in the history of HEAD.
func (s *scrubber) history(ctx context.Context) (hashes, error) {
	if s.head == "" {
		return nil, nil
	}
	var all []hash
	err := s.each(ctx, nil, '\n', func(line []byte) error {
		if h, ok := parseHash(line); ok {
			all = append(all, h)
		}
		return nil
	}, "rev-list", s.head)
	return sorted(all), err
}

// storeContent is what the object store has.
type storeContent struct {
	all, commits hashes
	stray        int // objects that are not to be kept
	lost         int // objects to keep that it lacks
}

// listStore lists the objects in the store, in pack order, which is several times faster
// than in name order.
func (s *scrubber) listStore(ctx context.Context) (c storeContent, err error) {
	err = s.each(ctx, nil, '\n', func(line []byte) error {
		if h, ok := parseHash(line); ok {
			c.all = append(c.all, h)
			if bytes.HasSuffix(line, []byte(" commit")) {
				c.commits = append(c.commits, h)
			}
		}
		return nil
	}, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname) %(objecttype)")
	c.all, c.commits = sorted(c.all), sorted(c.commits)
	return c, err
}

// reachable lists the objects to keep, in git's order: those that HEAD, the kept refs and
// the index need.
func (s *scrubber) reachable(ctx context.Context, kept []ref) (wanted []hash, err error) {
	var tips strings.Builder
	if s.head != "" {
		tips.WriteString(s.head + "\n")
	}
	for _, r := range kept {
		tips.WriteString(r.hash + "\n")
	}
	args := []string{"rev-list", "--objects", "--indexed-objects", "--stdin"}
	if s.partial {
		args = append(args, "--missing=print") // a line "?HASH"
	}
	err = s.each(ctx, []byte(tips.String()), '\n', func(line []byte) error {
		if h, ok := parseHash(line); ok {
			wanted = append(wanted, h)
		}
		return nil
	}, args...)
	return wanted, err
}

// removeObjects removes the objects that HEAD, the kept refs and the index do not need.
// room is the space for a pack beside the existing ones, in KiB. It returns what is left.
func (s *scrubber) removeObjects(ctx context.Context, kept []ref, room int64) (storeContent, error) {
	var store storeContent
	listed := make(chan error)
	go func() {
		var err error
		store, err = s.listStore(ctx)
		listed <- err
	}()
	wanted, err := s.reachable(ctx, kept)
	if err = errors.Join(<-listed, err); err != nil {
		return storeContent{}, err
	}
	reach := sorted(slices.Clone(wanted))
	store.stray = store.all.without(reach, nil)
	before := store.stray
	for _, dir := range []string{s.objects, filepath.Join(s.objects, "pack")} {
		if err := removePrefixed(dir, "tmp_", "incoming-"); err != nil {
			return storeContent{}, err
		}
	}
	hasAlternates := exists(filepath.Join(s.objects, "info", "alternates"))
	if store.stray > 0 && !hasAlternates {
		s.report.Method = "loose" // loose objects are the cheapest to remove
		removed := 0
		store.all.without(reach, func(h hash) {
			name := hex.EncodeToString(h[:len(s.hashOf())/2])
			if os.Remove(filepath.Join(s.objects, name[:2], name[2:])) == nil {
				removed++
			}
		})
		if removed > 0 {
			if store, err = s.listStore(ctx); err != nil {
				return storeContent{}, err
			}
			store.stray = store.all.without(reach, nil)
		}
	}
	if store.stray > 0 || hasAlternates || exists(filepath.Join(s.objects, "info", "http-alternates")) {
		s.report.Method = "repacked"
		if err := s.repack(ctx, wanted, room); err != nil {
			return storeContent{}, err
		}
		if store, err = s.listStore(ctx); err != nil {
			return storeContent{}, err
		}
		store.stray = store.all.without(reach, nil)
	}
	store.lost = reach.without(store.all, nil)
	s.report.ObjectsRemoved = before - store.stray
	return store, nil
}

// hashOf returns a hash in the repository's format.
func (s *scrubber) hashOf() string {
	if s.head != "" {
		return s.head
	}
	return strings.Repeat("0", 40)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func removePrefixed(dir string, prefixes ...string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(e.Name(), p) }) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// repack writes a pack with the objects to keep beside the existing packs, and replaces
// these. Existing deltas are reused and no new ones are searched.
func (s *scrubber) repack(ctx context.Context, wanted []hash, room int64) error {
	if free, err := freeKiB(s.objects); err == nil && free < room {
		return fmt.Errorf("%w for a pack of up to %d KiB in %s, which has %d KiB free", errNoSpace, room, s.objects, free)
	}
	made, packs := filepath.Join(s.objects, "mini"), filepath.Join(s.objects, "pack")
	if err := errors.Join(os.RemoveAll(made), os.MkdirAll(made, 0o755), os.MkdirAll(packs, 0o755)); err != nil { //nolint:gosec // as git does
		return err
	}
	if len(wanted) > 0 {
		g := s.git
		g.flags = append(slices.Clone(g.flags), "-c", "pack.packSizeLimit=0", "-c", "pack.writeReverseIndex=false")
		_, err := g.run(ctx, &hashReader{hashes: wanted, size: len(s.hashOf()) / 2}, io.Discard, "pack-objects",
			"--window=0", "--delta-base-offset", "-q", filepath.Join(made, "pack"))
		if err != nil {
			return fmt.Errorf("%w (it needs up to %d KiB in %s)", err, room, s.objects)
		}
	}
	entries, err := os.ReadDir(s.objects)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if len(e.Name()) == 2 && strings.Trim(e.Name(), "0123456789abcdef") == "" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.objects, e.Name())))
		}
	}
	err = errors.Join(err, filepath.WalkDir(packs, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return os.Remove(path) //nolint:gosec // no process of the agent runs yet
	}))
	if entries, readErr := os.ReadDir(made); readErr != nil {
		err = errors.Join(err, readErr)
	} else {
		for _, e := range entries {
			path := filepath.Join(made, e.Name())
			err = errors.Join(err, s.own(path), os.Rename(path, filepath.Join(packs, e.Name())))
		}
	}
	for _, name := range []string{"info/alternates", "info/http-alternates"} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.objects, name)))
	}
	return errors.Join(err, os.Remove(made))
}

// hashReader reads hashes as lines, without a copy of all of them.
type hashReader struct {
	hashes []hash
	size   int // bytes of a hash
	line   []byte
}

func (r *hashReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.line) == 0 {
			if len(r.hashes) == 0 {
				return n, io.EOF
			}
			r.line = append(hex.AppendEncode(r.line[:0], r.hashes[0][:r.size]), '\n')
			r.hashes = r.hashes[1:]
		}
		k := copy(p[n:], r.line)
		r.line, n = r.line[k:], n+k
	}
	return n, nil
}
