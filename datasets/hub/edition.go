package hub

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/atomicfile"
)

// Edition is a split of a dataset at one commit, as files in the cache.
type Edition struct {
	Repo     string    `json:"repo"`
	Revision string    `json:"revision"` // as it was asked for
	Commit   string    `json:"commit"`
	Split    string    `json:"split"`  // "" where file names tell no splits apart
	Splits   []string  `json:"splits"` // all that the commit has, by name
	Files    []File    `json:"files"`  // in the order of their rows
	Bytes    int64     `json:"bytes"`
	Fetched  time.Time `json:"fetched"` // when the hub last confirmed it, in UTC
	Endpoint string    `json:"endpoint"`
}

// File is one of an edition.
type File struct {
	Name   string `json:"name"` // in the repository, slash-separated
	Path   string `json:"-"`    // in the cache
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
	Blob   string `json:"blob"` // the last part of Path
}

// Source is the edition as a source of rows; name is what the user called it,
// "" for its own.
func (e Edition) Source(name string) datasets.Source {
	s := datasets.Source{Name: cmp.Or(name, e.Name()), Revision: e.Commit, Split: e.Split}
	for _, f := range e.Files {
		s.Files, s.Names, s.SHA256 = append(s.Files, f.Path), append(s.Names, f.Name), append(s.SHA256, f.SHA256)
	}
	s.Mend = "mini datasets fetch " + s.Name
	if ref, err := ParseRef(s.Name, ""); e.Split != "" && (err != nil || !e.serves(ref.orMain(), e.Endpoint)) {
		s.Mend += " --split " + e.Split
	}
	return s
}

// Name is how a user would write the edition, without the split.
func (e Edition) Name() string { return Ref{Repo: e.Repo, Revision: e.Revision}.String() }

// serves says whether the edition is what a reference asks for.
func (e Edition) serves(ref Ref, endpoint string) bool {
	if e.Repo != ref.Repo || e.Endpoint != endpoint || (e.Revision != ref.Revision && e.Commit != ref.Revision) {
		return false
	}
	splits := map[string][]string{}
	for _, s := range e.Splits {
		splits[s] = nil
	}
	split, err := datasets.PickSplit(splits, ref.Split)
	return err == nil && split == e.Split
}

// recordFormat is the version of an edition's file.
const recordFormat = "mini-dataset-1"

const maxRecord = 64 << 20 // bytes

type record struct {
	Format string `json:"format"`
	Edition
}

// recordName tells editions apart that could differ in what they are for.
func (e Edition) recordName() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Endpoint, e.Revision, e.Split, e.Commit}, "\n")))
	return e.Commit[:12] + "-" + hex.EncodeToString(sum[:8]) + ".json"
}

// record writes the edition down. It is the last act of a fetch: an edition
// that is recorded is complete.
func (h *Hub) record(e Edition) error {
	text, err := json.MarshalIndent(record{recordFormat, e}, "", "  ")
	if err != nil {
		return h.diskError(err, 0)
	}
	dir := h.folder(e.Repo, editionsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // datasets are no secret; a shared cache is a use
		return h.diskError(err, 0)
	}
	h.sweep(dir)
	err = atomicfile.Write(filepath.Join(dir, e.recordName()), append(text, '\n'), 0o644)
	return h.diskError(err, int64(len(text)))
}

// sweep removes what a mini that was killed left of a record. Whoever calls it
// holds the repository's lock, so that nobody is writing.
func (h *Hub) sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // what cannot be listed will fail to be written, and say so
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			_ = os.Remove(filepath.Join(dir, entry.Name())) // the next fetch tries again
		}
	}
}

// find returns the newest complete edition for a reference.
func (h *Hub) find(ref Ref) (Edition, bool) {
	for _, e := range h.editions(ref.Repo) {
		if e.serves(ref, h.endpoint) {
			return e, true
		}
	}
	return Edition{}, false
}

// torn says whether the reference was fetched once, and the cache has lost a
// file of it, or a part of one.
func (h *Hub) torn(ref Ref) bool {
	return slices.ContainsFunc(h.records(ref.Repo), func(e Edition) bool {
		return e.serves(ref, h.endpoint) && !h.complete(&e)
	})
}

// editions are the complete ones of a repository, the newest first. A fetch
// makes the others again.
func (h *Hub) editions(repo string) []Edition {
	return slices.DeleteFunc(h.records(repo), func(e Edition) bool { return !h.complete(&e) })
}

// records reads the editions that a repository has had, the newest first, and
// leaves out what cannot be read.
func (h *Hub) records(repo string) []Edition {
	dir := h.folder(repo, editionsDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []Edition
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") || !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		if e, err := readRecord(filepath.Join(dir, entry.Name())); err == nil && e.Repo == repo {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b Edition) int { return b.Fetched.Compare(a.Fetched) })
	return found
}

var errRecord = errors.New("not the record of an edition")

func readRecord(path string) (Edition, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRecord {
		return Edition{}, errors.Join(errRecord, err)
	}
	text, err := os.ReadFile(path) //nolint:gosec // a name in the cache
	if err != nil {
		return Edition{}, errors.Join(errRecord, err)
	}
	var r record
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&r); err != nil || r.Format != recordFormat || !commitID.MatchString(r.Commit) {
		return Edition{}, errors.Join(errRecord, err)
	}
	return r.Edition, nil
}

// complete fills in the paths, and says whether every file is there in its
// full length. The content was checked before it got its name.
func (h *Hub) complete(e *Edition) bool {
	for i, f := range e.Files {
		if !blobName.MatchString(f.Blob) {
			return false
		}
		e.Files[i].Path = h.folder(e.Repo, blobsDir, f.Blob)
		if !has(e.Files[i].Path, f.Size) {
			return false
		}
	}
	return len(e.Files) > 0
}

// has says whether path is a file of this length.
func has(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// Cached lists the complete editions of the cache, of every endpoint, by
// repository and split, the newest first.
func (h *Hub) Cached() ([]Edition, error) {
	entries, err := os.ReadDir(h.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, h.diskError(err, 0)
	}
	var all []Edition
	for _, entry := range entries {
		if org, name, ok := strings.Cut(entry.Name(), "--"); ok && repoName.MatchString(org+"/"+name) {
			all = append(all, h.editions(org+"/"+name)...)
		}
	}
	slices.SortStableFunc(all, func(a, b Edition) int {
		return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Split, b.Split), b.Fetched.Compare(a.Fetched))
	})
	return all, nil
}
