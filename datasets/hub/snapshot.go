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
func (s Snapshot) Source(name string) datasets.Source {
	src := datasets.Source{Name: cmp.Or(name, s.Name()), Revision: s.Commit, Split: s.Split}
	for _, f := range s.Files {
		src.Files, src.Names = append(src.Files, f.Path), append(src.Names, f.Name)
		src.SHA256 = append(src.SHA256, f.SHA256)
	}
	src.FetchCommand = "mini datasets fetch " + src.Name
	if ref, err := ParseRef(src.Name, ""); s.Split != "" && (err != nil || !s.matches(ref.withRevision(), s.Endpoint)) {
		src.FetchCommand += " --split " + s.Split
	}
	return src
}

// Name returns the reference to the snapshot as a user would type it, without the split.
func (s Snapshot) Name() string { return Ref{Repo: s.Repo, Revision: s.Revision}.String() }

// matches reports whether a reference at an endpoint means this snapshot.
func (s Snapshot) matches(ref Ref, endpoint string) bool {
	if s.Repo != ref.Repo || s.Endpoint != endpoint || (s.Revision != ref.Revision && s.Commit != ref.Revision) {
		return false
	}
	splits := map[string][]string{}
	for _, name := range s.Splits {
		splits[name] = nil
	}
	split, err := datasets.PickSplit(splits, ref.Split)
	return err == nil && split == s.Split
}

// recordFormat is the version of a snapshot's file.
const recordFormat = "mini-dataset-1"

const maxRecord = 64 << 20 // bytes

type record struct {
	Format string `json:"format"`
	Snapshot
}

// recordName returns a file name that differs for different references.
func (s Snapshot) recordName() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{s.Endpoint, s.Revision, s.Split, s.Commit}, "\n")))
	return s.Commit[:12] + "-" + hex.EncodeToString(sum[:8]) + ".json"
}

// record writes the snapshot's file. It is the last step of a fetch: a recorded snapshot is
// complete.
func (h *Hub) record(s Snapshot) error {
	text, err := json.MarshalIndent(record{recordFormat, s}, "", "  ")
	if err != nil {
		return h.diskError(err, 0)
	}
	dir := h.folder(s.Repo, snapshotsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // datasets are public; users may share a cache
		return h.diskError(err, 0)
	}
	h.sweep(dir)
	err = atomicfile.Write(filepath.Join(dir, s.recordName()), append(text, '\n'), 0o644)
	return h.diskError(err, int64(len(text)))
}

// sweep removes the temporary files of killed processes. The caller holds the lock of the
// repository, so no other process is writing.
func (h *Hub) sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // the caller's write will fail and report the error
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			_ = os.Remove(filepath.Join(dir, entry.Name())) // the next fetch tries again
		}
	}
}

// find returns the newest complete snapshot for a reference.
func (h *Hub) find(ref Ref) (Snapshot, bool) {
	for _, s := range h.snapshots(ref.Repo) {
		if s.matches(ref, h.endpoint) {
			return s, true
		}
	}
	return Snapshot{}, false
}

// isDamaged reports whether the reference was fetched before, but files are missing or
// truncated.
func (h *Hub) isDamaged(ref Ref) bool {
	return slices.ContainsFunc(h.records(ref.Repo), func(s Snapshot) bool {
		return s.matches(ref, h.endpoint) && !h.complete(&s)
	})
}

// snapshots returns the complete snapshots of a repository, newest first.
func (h *Hub) snapshots(repo string) []Snapshot {
	return slices.DeleteFunc(h.records(repo), func(s Snapshot) bool { return !h.complete(&s) })
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
		if s, err := readRecord(filepath.Join(dir, entry.Name())); err == nil && s.Repo == repo {
			found = append(found, s)
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

// complete sets the paths of a snapshot's files and reports whether every file exists with
// its size. The download has verified the content before it gave the file its name.
func (h *Hub) complete(s *Snapshot) bool {
	for i, f := range s.Files {
		if !blobName.MatchString(f.Blob) {
			return false
		}
		s.Files[i].Path = h.folder(s.Repo, blobsDir, f.Blob)
		if !hasSize(s.Files[i].Path, f.Size) {
			return false
		}
	}
	return len(s.Files) > 0
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
			all = append(all, h.snapshots(org+"/"+name)...)
		}
	}
	slices.SortStableFunc(all, func(a, b Snapshot) int {
		return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Split, b.Split), b.Fetched.Compare(a.Fetched))
	})
	return all, nil
}
