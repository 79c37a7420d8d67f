// Package verdicts defines the records of evaluations. It reads, writes and
// signs them, and locates them in a run folder.
//
//	set, err := verdicts.Read("runs/first")
//	for _, v := range set.Verdicts { fmt.Println(v.Instance, v.Class) }
package verdicts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// DirName is the folder of the records in a run folder. A record is at
// RUN_ID/MODEL/INSTANCE.json below it.
const DirName = datasets.VerdictsDir

// maxRecord is the maximum size of a record, in bytes. Records with many runs and
// flags have tens of kilobytes.
const maxRecord = 16 << 20

// Verdict is a record and the file that holds it.
type Verdict struct {
	Path    string    `json:"-"`
	Written time.Time `json:"-"` // modification time of the file
	Signed  bool      `json:"-"` // signed with the user's key; only ReadInstance sets it
	Record
}

// Set holds all verdicts of a run folder.
type Set struct {
	Dir string // the run folder
	// Verdicts is sorted by run id, model and instance.
	Verdicts []Verdict
	// Unreadable lists the errors of the records that could not be read.
	Unreadable []string
}

// Read reads all records of a run folder, which may be missing or have none. A
// record whose instance, model or run id disagrees with its path is unreadable.
// The folder is untrusted: Read opens only regular files and does not follow links.
func Read(dir string) (Set, error) {
	set := Set{Dir: dir}
	root, err := rootdir.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return set, nil
	}
	if err != nil {
		return set, fmt.Errorf("read verdicts: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read
	models, err := listModelDirs(root)
	if err != nil {
		return set, err
	}
	for _, model := range models {
		entries, err := root.ReadDir(model)
		if err != nil {
			return set, fmt.Errorf("read verdicts: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() || filepath.Ext(e.Name()) != ".json" {
				continue
			}
			v, err := readVerdict(root, filepath.Join(model, e.Name()))
			switch {
			case errors.Is(err, fs.ErrNotExist): // the file is being replaced
			case err != nil:
				set.Unreadable = append(set.Unreadable, err.Error())
			default:
				set.Verdicts = append(set.Verdicts, v)
			}
		}
	}
	slices.SortStableFunc(set.Verdicts, func(a, b Verdict) int {
		if a.RunID != b.RunID || a.Model != b.Model {
			return 0 // keep the order of the folders
		}
		return datasets.CompareNatural(a.Instance, b.Instance)
	})
	return set, nil
}

// ReadInstance reads the verdicts of all run ids and models on an instance. It
// skips unreadable records, as an evaluation does. isOwn reports whether the user
// made a record, and sets Verdict.Signed; it may be nil.
func ReadInstance(dir, id string, isOwn func(Record) bool) []Verdict {
	if datasets.CheckID(id) != nil { // the id is untrusted and becomes part of a path
		return nil
	}
	root, err := rootdir.Open(dir)
	if err != nil {
		return nil
	}
	defer root.Close() //nolint:errcheck // only read
	models, err := listModelDirs(root)
	if err != nil {
		return nil
	}
	var all []Verdict
	for _, model := range models {
		v, err := readVerdict(root, filepath.Join(model, id+".json"))
		if err != nil {
			continue
		}
		v.Signed = isOwn != nil && isOwn(v.Record)
		all = append(all, v)
	}
	return all
}

// Newest returns the newest verdict on a prediction, or nil if there is none.
// Signed verdicts take precedence. Verdicts on other patches of the instance do
// not count.
func Newest(all []Verdict, p trajectories.Prediction) *Verdict {
	var newest *Verdict
	for i, v := range all {
		switch {
		case !v.Matches(p):
		case newest == nil, v.Signed && !newest.Signed, v.Signed == newest.Signed && v.Written.After(newest.Written):
			newest = &all[i]
		}
	}
	return newest
}

// listModelDirs returns the paths of the folders with records, RUN_ID/MODEL below
// DirName. It does not follow links.
func listModelDirs(root *rootdir.Dir) ([]string, error) {
	paths := []string{filepath.Join(root.Path(), DirName)}
	if info, err := root.Lstat(paths[0]); err != nil || !info.IsDir() {
		return nil, nil //nolint:nilerr // there are no verdicts
	}
	for range 2 { // descend to the runs, then to the models
		var subdirs []string
		for _, path := range paths {
			entries, err := root.ReadDir(path)
			if err != nil {
				return nil, fmt.Errorf("read verdicts: %w", err)
			}
			for _, e := range entries {
				if e.IsDir() {
					subdirs = append(subdirs, filepath.Join(path, e.Name()))
				}
			}
		}
		paths = subdirs
	}
	return paths, nil
}

func readVerdict(root *rootdir.Dir, path string) (Verdict, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return Verdict{}, err
	}
	if !info.Mode().IsRegular() {
		return Verdict{}, fmt.Errorf("read verdict %s: not a regular file", path)
	}
	r, err := ReadRecord(root, path)
	if err == nil && !r.matchesPath(path) {
		err = fmt.Errorf("read verdict %s: path does not match instance %.80q, run %.80q, model %.80q",
			path, r.Instance, r.RunID, r.Model)
	}
	return Verdict{Path: path, Written: info.ModTime(), Record: r}, err
}

// ReadRecord reads and checks a record at any path. The file is untrusted.
func ReadRecord(root *rootdir.Dir, path string) (Record, error) {
	data, err := root.ReadFile(path, maxRecord)
	if err != nil {
		return Record{}, fmt.Errorf("read verdict: %w", err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("read verdict %s: %w", path, err)
	}
	switch {
	case r.Format != Format:
		return Record{}, fmt.Errorf("read verdict %s: unknown format %.40q (this version of mini reads %s)",
			path, r.Format, Format)
	case !slices.Contains(Classes(), r.Class):
		return Record{}, fmt.Errorf("read verdict %s: unknown class %.40q", path, r.Class)
	}
	return r, nil
}

// Write atomically replaces a record, or the summary of an evaluation.
func Write(root *rootdir.Dir, path string, v any) error {
	data, err := text.JSON(v)
	if err == nil {
		err = root.WriteFile(path, data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// Path returns the path of a record in a run folder.
func Path(dir string, r Record) string {
	return filepath.Join(dir, DirName, r.RunID, strings.ReplaceAll(r.Model, "/", "__"), r.Instance+".json")
}

// The model names of the baselines, the evaluations that check this machine:
// with each row's own solution, and without a patch.
const (
	GoldModel = "gold" // as in the official harness
	NoopModel = "noop"
)

// IsBaseline reports whether the verdict is on a baseline, not on a patch of an
// agent.
func (r Record) IsBaseline() bool { return r.Model == GoldModel || r.Model == NoopModel }

// Index finds verdicts by attempt.
type Index map[indexKey][]*Verdict

// indexKey identifies the attempt that counts for a repetition of an instance.
type indexKey struct {
	instance   string
	repetition int
}

// Index returns an index of the verdicts, without those on baselines. It refers to
// the verdicts of the set.
func (s Set) Index() Index {
	index := Index{}
	for i := range s.Verdicts {
		if v := &s.Verdicts[i]; !v.IsBaseline() {
			key := indexKey{v.Instance, max(1, v.Repetition)}
			index[key] = append(index[key], v)
		}
	}
	for _, list := range index {
		slices.SortStableFunc(list, func(a, b *Verdict) int { return b.Written.Compare(a.Written) })
	}
	return index
}

// Find returns the newest verdict with a class, or with any class if it is "", on
// an attempt's patch; nil if there is none. It compares the sizes of the patches,
// which excludes most verdicts on earlier attempts. It does not compare the
// patches themselves, because that would require opening the journals.
func (x Index) Find(instance string, repetition, patchBytes int, class Class) *Verdict {
	list := x[indexKey{instance, max(1, repetition)}]
	i := slices.IndexFunc(list, func(v *Verdict) bool {
		return v.Basis.PatchBytes == patchBytes && cmp.Or(class, v.Class) == v.Class
	})
	if i < 0 {
		return nil
	}
	return list[i]
}

// Newest returns the newest verdict on each attempt, ordered by instance and
// repetition.
func (x Index) Newest() []Verdict {
	var newest []Verdict
	for _, list := range x {
		newest = append(newest, *list[0])
	}
	slices.SortFunc(newest, func(a, b Verdict) int {
		return cmp.Or(datasets.CompareNatural(a.Instance, b.Instance), cmp.Compare(a.Repetition, b.Repetition))
	})
	return newest
}
