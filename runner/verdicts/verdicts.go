// Package verdicts owns the records of evaluations: what a record says, who made
// it, and where it lies in the folder of a run. Everybody who reads or writes one
// does it here.
//
//	found, err := verdicts.Read("runs/first")
//	for _, v := range found.Verdicts { fmt.Println(v.Instance, v.Class) }
package verdicts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/trajectories"
)

// Folder is where records are, within the folder of a run, as
// RUN_ID/MODEL/INSTANCE.json.
const Folder = datasets.VerdictsDir

// maxRecord bounds a record, in bytes. With every run and every flag it has
// some ten kilobytes.
const maxRecord = 16 << 20

// Verdict is a record and the file it is in.
type Verdict struct {
	Path    string    `json:"-"`
	Written time.Time `json:"-"`
	Own     bool      `json:"-"` // the user made it; known of OfInstance
	Record
}

// Found is what a folder holds.
type Found struct {
	Dir string // the folder of the run
	// Verdicts are in the order of run id, model and instance.
	Verdicts []Verdict
	// Unread says what could not be read, a sentence each.
	Unread []string
}

// Read finds the records below the folder of a run: none is no error. A record
// that says another instance or run than its place does is not believed. The
// folder may come from a stranger: what is no plain file is not opened, and
// links are not followed.
func Read(dir string) (Found, error) {
	f := Found{Dir: dir}
	root, err := rootdir.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("read verdicts: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read
	models, err := modelFolders(root)
	if err != nil {
		return f, err
	}
	for _, model := range models {
		entries, err := root.ReadDir(model)
		if err != nil {
			return f, fmt.Errorf("read verdicts: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() || filepath.Ext(e.Name()) != ".json" {
				continue
			}
			v, err := read(root, filepath.Join(model, e.Name()))
			switch {
			case errors.Is(err, fs.ErrNotExist): // replaced at this moment
			case err != nil:
				f.Unread = append(f.Unread, err.Error())
			default:
				f.Verdicts = append(f.Verdicts, v)
			}
		}
	}
	slices.SortStableFunc(f.Verdicts, func(a, b Verdict) int {
		if a.RunID != b.RunID || a.Model != b.Model {
			return 0 // in the order of their folders
		}
		return datasets.Natural(a.Instance, b.Instance)
	})
	return f, nil
}

// OfInstance reads what evaluations have found of an instance, of all run ids and
// models. What cannot be read is no verdict: evaluating finds it missing too. own
// tells the records that the user made; nil where there are none.
func OfInstance(dir, id string, own func(Record) bool) []Verdict {
	if datasets.CheckID(id) != nil { // it names files, and may come from a stranger
		return nil
	}
	root, err := rootdir.Open(dir)
	if err != nil {
		return nil
	}
	defer root.Close() //nolint:errcheck // only read
	models, err := modelFolders(root)
	if err != nil {
		return nil
	}
	var all []Verdict
	for _, model := range models {
		v, err := read(root, filepath.Join(model, id+".json"))
		if err != nil {
			continue
		}
		v.Own = own != nil && own(v.Record)
		all = append(all, v)
	}
	return all
}

// Newest is the newest verdict on a prediction of those that the user made, else
// of all; nil where there is none. A verdict on an earlier patch of the same
// instance is none.
func Newest(all []Verdict, p trajectories.Prediction) *Verdict {
	var found *Verdict
	for i, v := range all {
		switch {
		case !v.IsOn(p):
		case found == nil, v.Own && !found.Own, v.Own == found.Own && v.Written.After(found.Written):
			found = &all[i]
		}
	}
	return found
}

// modelFolders are the paths of the folders that have records. Links are not
// followed.
func modelFolders(root *rootdir.Dir) ([]string, error) {
	paths := []string{filepath.Join(root.Path(), Folder)}
	if info, err := root.Lstat(paths[0]); err != nil || !info.IsDir() {
		return nil, nil //nolint:nilerr // there was no evaluation
	}
	for range 2 { // runs, models
		var below []string
		for _, path := range paths {
			entries, err := root.ReadDir(path)
			if err != nil {
				return nil, fmt.Errorf("read verdicts: %w", err)
			}
			for _, e := range entries {
				if e.IsDir() {
					below = append(below, filepath.Join(path, e.Name()))
				}
			}
		}
		paths = below
	}
	return paths, nil
}

func read(root *rootdir.Dir, path string) (Verdict, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return Verdict{}, err
	}
	if !info.Mode().IsRegular() {
		return Verdict{}, fmt.Errorf("read verdict %s: it is not a plain file", path)
	}
	r, err := ReadRecord(root, path)
	if err == nil && !r.isAt(path) {
		err = fmt.Errorf("read verdict %s: it is of another place: instance %.80q, run %.80q, model %.80q", path, r.Instance, r.RunID, r.Model)
	}
	return Verdict{Path: path, Written: info.ModTime(), Record: r}, err
}

// ReadRecord reads a record that may be anywhere, and anybody's.
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
		return Record{}, fmt.Errorf("read verdict %s: the format is %.40q, and this mini knows %s", path, r.Format, Format)
	case !slices.Contains(Classes(), r.Class):
		return Record{}, fmt.Errorf("read verdict %s: this mini does not know the class %.40q", path, r.Class)
	}
	return r, nil
}

// Write replaces a record, or a summary beside the records, in one piece.
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
