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
	Endpoint string    `json:"endpoint"`
}

// File is a file of a Snapshot.
type File struct {
	Name   string `json:"name"` // in the repository, slash-separated
	Path   string `json:"-"`    // in the cache
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
	Blob   string `json:"blob"` // last element of Path
}

// Source returns the snapshot as a source of rows. name is the name the user typed; ""
// means Name.
func (e Snapshot) Source(name string) datasets.Source {
	s := datasets.Source{Name: cmp.Or(name, e.Name()), Revision: e.Commit, Split: e.Split}
	for _, f := range e.Files {
		s.Files, s.Names, s.SHA256 = append(s.Files, f.Path), append(s.Names, f.Name), append(s.SHA256, f.SHA256)
	}
	s.Hint = "mini datasets fetch " + s.Name
	if ref, err := ParseRef(s.Name, ""); e.Split != "" && (err != nil || !e.matches(ref.orMain(), e.Endpoint)) {
		s.Hint += " --split " + e.Split
	}
	return s
}

// Name returns the reference to the snapshot as a user would type it, without the split.
func (e Snapshot) Name() string { return Ref{Repo: e.Repo, Revision: e.Revision}.String() }

// matches reports whether the snapshot is the one that a reference means.
func (e Snapshot) matches(ref Ref, endpoint string) bool {
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

// recordFormat is the version of a snapshot's file.
const recordFormat = "mini-dataset-1"

const maxRecord = 64 << 20 // bytes

type record struct {
	Format string `json:"format"`
	Snapshot
}

// recordName returns a file name that differs for different references.
func (e Snapshot) recordName() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Endpoint, e.Revision, e.Split, e.Commit}, "\n")))
	return e.Commit[:12] + "-" + hex.EncodeToString(sum[:8]) + ".json"
}

// record writes the snapshot's file. It is the last step of a fetch: a recorded snapshot is
// complete.
func (h *Hub) record(e Snapshot) error {
	text, err := json.MarshalIndent(record{recordFormat, e}, "", "  ")
	if err != nil {
		return h.diskError(err, 0)
	}
	dir := h.folder(e.Repo, snapshotsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // datasets are public; users may share a cache
		return h.diskError(err, 0)
	}
	h.sweep(dir)
	err = atomicfile.Write(filepath.Join(dir, e.recordName()), append(text, '\n'), 0o644)
	return h.diskError(err, int64(len(text)))
}

// sweep removes temporary files of killed processes. The caller holds the repository's
// lock, so no process is writing.
func (h *Hub) sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // writing the record will fail and report the error
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			_ = os.Remove(filepath.Join(dir, entry.Name())) // the next fetch retries
		}
	}
}

// find returns the newest complete snapshot for a reference.
func (h *Hub) find(ref Ref) (Snapshot, bool) {
	for _, e := range h.editions(ref.Repo) {
		if e.matches(ref, h.endpoint) {
			return e, true
		}
	}
	return Snapshot{}, false
}

// isDamaged reports whether the reference was fetched before, but files are missing or
// truncated.
func (h *Hub) isDamaged(ref Ref) bool {
	return slices.ContainsFunc(h.records(ref.Repo), func(e Snapshot) bool {
		return e.matches(ref, h.endpoint) && !h.complete(&e)
	})
}

// editions returns the complete snapshots of a repository, newest first.
func (h *Hub) editions(repo string) []Snapshot {
	return slices.DeleteFunc(h.records(repo), func(e Snapshot) bool { return !h.complete(&e) })
}

// records returns all readable snapshots of a repository, newest first.
func (h *Hub) records(repo string) []Snapshot {
	dir := h.folder(repo, snapshotsDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []Snapshot
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") || !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		if e, err := readRecord(filepath.Join(dir, entry.Name())); err == nil && e.Repo == repo {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b Snapshot) int { return b.Fetched.Compare(a.Fetched) })
	return found
}

var errRecord = errors.New("not a snapshot file")

func readRecord(path string) (Snapshot, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRecord {
		return Snapshot{}, errors.Join(errRecord, err)
	}
	text, err := os.ReadFile(path) //nolint:gosec // a name in the cache
	if err != nil {
		return Snapshot{}, errors.Join(errRecord, err)
	}
	var r record
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&r); err != nil || r.Format != recordFormat || !commitPattern.MatchString(r.Commit) {
		return Snapshot{}, errors.Join(errRecord, err)
	}
	return r.Snapshot, nil
}

// complete sets the paths and reports whether every file exists with its size. The content
// was verified before the file got its name.
func (h *Hub) complete(e *Snapshot) bool {
	for i, f := range e.Files {
		if !blobName.MatchString(f.Blob) {
			return false
		}
		e.Files[i].Path = h.folder(e.Repo, blobsDir, f.Blob)
		if !hasSize(e.Files[i].Path, f.Size) {
			return false
		}
	}
	return len(e.Files) > 0
}

// hasSize reports whether path is a file of this size.
func hasSize(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// Cached lists the complete snapshots of all endpoints in the cache, by repository and
// split, newest first.
func (h *Hub) Cached() ([]Snapshot, error) {
	entries, err := os.ReadDir(h.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, h.diskError(err, 0)
	}
	var all []Snapshot
	for _, entry := range entries {
		if org, name, ok := strings.Cut(entry.Name(), "--"); ok && repoName.MatchString(org+"/"+name) {
			all = append(all, h.editions(org+"/"+name)...)
		}
	}
	slices.SortStableFunc(all, func(a, b Snapshot) int {
		return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Split, b.Split), b.Fetched.Compare(a.Fetched))
	})
	return all, nil
}
