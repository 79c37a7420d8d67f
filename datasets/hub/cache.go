package hub

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // required by Git
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/atomicfile"
)

// The cache has the layout of the library huggingface_hub, so that both use the files that
// the other has downloaded:
//
//	datasets--<org>--<name>/blobs/<checksum>              a complete, verified file
//	datasets--<org>--<name>/blobs/<checksum>.incomplete   a download
//	datasets--<org>--<name>/refs/<revision>               contains the commit
//	datasets--<org>--<name>/snapshots/<commit>/<file>     a link to a blob
//	.locks/datasets--<org>--<name>/<checksum>.lock        locked during a download
//
// The checksum is the SHA-256 of a file in Git LFS (64 digits), or else the SHA-1 of the Git
// blob (40). mini adds to a snapshot the names of all data files of the commit, because the
// links alone do not tell whether a split is complete and which others there are.
const (
	repoPrefix  = "datasets--"
	listingName = ".mini-files.json"
)

// folder returns a path in the directory of a repository.
func (h *Hub) folder(repo string, parts ...string) string {
	return filepath.Join(append([]string{h.dir, folderName(repo)}, parts...)...)
}

func folderName(repo string) string { return repoPrefix + strings.Replace(repo, "/", "--", 1) }

// Snapshot is one split of a dataset at a commit, as files in the cache.
type Snapshot struct {
	Repo     string    `json:"repo"`
	Revision string    `json:"revision"` // as requested
	Commit   string    `json:"commit"`
	Split    string    `json:"split"`  // "" if the file names contain no splits
	Splits   []string  `json:"splits"` // all splits of the commit, sorted
	Files    []File    `json:"files"`  // in the order of the rows
	Bytes    int64     `json:"bytes"`
	Fetched  time.Time `json:"fetched"` // last confirmation by the hub, in UTC
}

// File is a file of a Snapshot.
type File struct {
	Name string `json:"name"` // in the repository, slash-separated
	Path string `json:"-"`    // in the cache
	Size int64  `json:"size"` // bytes
	Blob string `json:"blob"` // checksum; "" if another program made a copy instead of a link
}

// Source returns the snapshot as a source of rows. name is the name the user typed; ""
// means Name.
func (s Snapshot) Source(name string) datasets.Source {
	src := datasets.Source{Name: cmp.Or(name, s.Name()), Revision: s.Commit, Split: s.Split}
	for _, f := range s.Files {
		src.Files, src.Names = append(src.Files, f.Path), append(src.Names, f.Name)
		known := ""
		if len(f.Blob) == hex.EncodedLen(sha256.Size) {
			known = f.Blob
		}
		src.SHA256 = append(src.SHA256, known)
	}
	return src
}

// Name returns the reference to the snapshot as a user would type it, without the split.
func (s Snapshot) Name() string { return Ref{Repo: s.Repo, Revision: s.Revision}.String() }

// Find returns the cached snapshot of a reference. It does not verify checksums.
func (h *Hub) Find(ref Ref) (Snapshot, bool) {
	ref = ref.withRevision()
	commit := ref.Revision
	if text, err := os.ReadFile(h.folder(ref.Repo, "refs", filepath.FromSlash(ref.Revision))); err == nil {
		commit = strings.TrimSpace(string(text))
	}
	return h.findCommit(ref, commit)
}

// findCommit returns the snapshot of the split of ref at a commit, if all its files exist.
func (h *Hub) findCommit(ref Ref, commit string) (Snapshot, bool) {
	if !checksum.MatchString(commit) {
		return Snapshot{}, false
	}
	names, fetched := h.listing(ref.Repo, commit)
	splits := splitFiles(names, h.card(ref.Repo, commit))
	split, err := datasets.PickSplit(splits, ref.Split)
	if err != nil || datasets.CheckShards(splits[split]) != nil {
		return Snapshot{}, false
	}
	s := Snapshot{
		Repo: ref.Repo, Revision: ref.Revision, Commit: commit, Split: split,
		Splits: slices.Sorted(maps.Keys(splits)), Fetched: fetched,
	}
	for _, name := range splits[split] {
		f := File{Name: name, Path: h.folder(ref.Repo, "snapshots", commit, filepath.FromSlash(name))}
		info, err := os.Stat(f.Path)
		if err != nil || !info.Mode().IsRegular() {
			return Snapshot{}, false
		}
		f.Size = info.Size()
		if target, err := os.Readlink(f.Path); err == nil {
			f.Blob = filepath.Base(target)
		}
		s.Files, s.Bytes = append(s.Files, f), s.Bytes+f.Size
	}
	return s, true
}

// listing returns the names of the data files of a commit, and when the hub confirmed them.
// For a snapshot of another program, which may lack files, it returns nothing or, offline, the
// names of the files in the cache.
func (h *Hub) listing(repo, commit string) (names []string, fetched time.Time) {
	dir := h.folder(repo, "snapshots", commit)
	text, err := os.ReadFile(filepath.Join(dir, listingName)) //nolint:gosec // a name in the cache
	if err == nil && json.Unmarshal(text, &names) == nil {
		if info, err := os.Stat(filepath.Join(dir, listingName)); err == nil { //nolint:gosec // a name in the cache
			fetched = info.ModTime().UTC()
		}
		return names, fetched
	}
	if !h.offline {
		return nil, fetched
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { //nolint:gosec // a name in the cache; what cannot be read is not cached
		if err == nil && !d.IsDir() {
			names = append(names, filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator))))
		}
		return nil
	})
	return names, fetched
}

// writeListing records the names of the data files of a commit.
func (h *Hub) writeListing(repo, commit string, names []string) error {
	text, err := json.Marshal(names)
	if err != nil {
		return h.diskError(err, 0)
	}
	return h.write(h.folder(repo, "snapshots", commit, listingName), text)
}

// writeRef records the commit of a revision, as the last step of a fetch, and its time.
func (h *Hub) writeRef(ref Ref, commit string) error {
	now := time.Now()
	_ = os.Chtimes(h.folder(ref.Repo, "snapshots", commit, listingName), now, now) // another program's snapshot has none
	return h.write(h.folder(ref.Repo, "refs", filepath.FromSlash(ref.Revision)), []byte(commit))
}

func (h *Hub) write(path string, text []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755) //nolint:gosec // datasets are public; users may share a cache
	if err == nil {
		err = atomicfile.Write(path, text, 0o644)
	}
	return h.diskError(err, int64(len(text)))
}

// card returns the dataset card of a commit, as far as it is in the cache.
func (h *Hub) card(repo, commit string) []byte {
	file, err := os.Open(h.folder(repo, "snapshots", commit, cardName)) //nolint:gosec // a name in the cache
	if err != nil {
		return nil
	}
	defer file.Close()                                 //nolint:errcheck // read only
	card, _ := io.ReadAll(io.LimitReader(file, 1<<20)) // the YAML header is at the start
	return card
}

// Cached lists the complete snapshots that mini has fetched, by repository and split, newest
// first. Those of other programs may contain anything.
func (h *Hub) Cached() ([]Snapshot, error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, h.diskError(err, 0)
	}
	var all []Snapshot
	for _, entry := range entries {
		name, isDataset := strings.CutPrefix(entry.Name(), repoPrefix)
		org, name, _ := strings.Cut(name, "--")
		repo := org + "/" + name
		if !isDataset || !repoName.MatchString(repo) {
			continue
		}
		refs := h.folder(repo, "refs")
		_ = filepath.WalkDir(refs, func(path string, d fs.DirEntry, err error) error { // as in listing
			if err == nil && !d.IsDir() {
				all = append(all, h.splits(repo, filepath.ToSlash(strings.TrimPrefix(path, refs+string(filepath.Separator))))...)
			}
			return nil
		})
	}
	slices.SortStableFunc(all, func(a, b Snapshot) int {
		return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Split, b.Split), b.Fetched.Compare(a.Fetched))
	})
	return all, nil
}

// splits returns the snapshots of all complete splits of a revision that mini has fetched.
func (h *Hub) splits(repo, revision string) []Snapshot {
	text, _ := os.ReadFile(h.folder(repo, "refs", filepath.FromSlash(revision)))
	commit := strings.TrimSpace(string(text))
	names, fetched := h.listing(repo, commit)
	if fetched.IsZero() {
		return nil
	}
	var found []Snapshot
	for split := range splitFiles(names, h.card(repo, commit)) {
		if s, ok := h.findCommit(Ref{Repo: repo, Revision: revision, Split: split}, commit); ok && s.Split == split {
			found = append(found, s)
		}
	}
	return found
}

// link adds a blob to a snapshot.
func (h *Hub) link(repo, commit, name, blob string) error {
	path := h.folder(repo, "snapshots", commit, filepath.FromSlash(name))
	target := strings.Repeat("../", strings.Count(name, "/")+2) + "blobs/" + blob
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(path), 0o755) //nolint:gosec // as in write
	if err == nil {
		_ = os.Remove(path) // usually there is none
		err = os.Symlink(filepath.FromSlash(target), path)
	}
	if errors.Is(err, fs.ErrExist) { // another process was faster
		err = nil
	}
	return h.diskError(err, 0)
}

// lock locks a blob for a download. The operating system releases the lock if the process
// dies.
func (h *Hub) lock(ctx context.Context, repo, blob string) (unlock func() error, err error) {
	path := filepath.Join(h.dir, ".locks", folderName(repo), blob+".lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as in write
		return nil, h.diskError(err, 0)
	}
	l := flock.New(path, flock.SetPermissions(0o644))
	ok, err := l.TryLock()
	if err == nil && !ok {
		h.progress(Progress{Stage: Waiting, Repo: repo})
		_, err = l.TryLockContext(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			_ = l.Close() // the lock may have been acquired at the last moment
			return nil, context.Cause(ctx)
		}
	}
	return l.Close, h.diskError(err, 0)
}

// isIntact reports whether the files of the snapshot have their checksums.
func (s Snapshot) isIntact(ctx context.Context) (bool, error) {
	for _, f := range s.Files {
		if checksum.MatchString(f.Blob) && !isIntact(ctx, f.Path, f.Blob) {
			return false, context.Cause(ctx)
		}
	}
	return true, nil
}

// isIntact reports whether a file exists and has a checksum.
func isIntact(ctx context.Context, path, blob string) bool {
	file, err := os.Open(path) //nolint:gosec // a name in the cache
	if err != nil {
		return false
	}
	defer file.Close()                                          //nolint:errcheck // read only
	defer context.AfterFunc(ctx, func() { _ = file.Close() })() // ends the copy
	info, err := file.Stat()
	if err != nil {
		return false
	}
	sum := newHash(blob, info.Size())
	_, err = io.Copy(sum, file)
	return err == nil && hasSum(sum, blob)
}

// newHash returns the hash for a blob's name: SHA-256, or that of a Git blob of this size.
func newHash(blob string, size int64) hash.Hash {
	if len(blob) == hex.EncodedLen(sha256.Size) {
		return sha256.New()
	}
	h := sha1.New()                            //nolint:gosec // required by Git
	_, _ = fmt.Fprintf(h, "blob %d\x00", size) // never fails
	return h
}

func hasSum(sum hash.Hash, blob string) bool {
	want, err := hex.DecodeString(blob)
	return err == nil && bytes.Equal(sum.Sum(nil), want)
}
