// Package verdicts finds the records that evaluations leave in the folder of a
// run, and replaces them. What a record says, and where it lies, is package
// evaluate's affair.
//
//	found, err := verdicts.Read("runs/first")
//	for _, v := range found.Verdicts { fmt.Println(v.Instance, v.Class) }
package verdicts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/rootdir"
)

// Folder is where records are, within the folder of a run.
const Folder = datasets.VerdictsDir

// maxRecord bounds a record, in bytes. With every run and every flag it has
// some ten kilobytes.
const maxRecord = 16 << 20

// Verdict is a record and the file it is in.
type Verdict struct {
	Path string `json:"-"`
	evaluate.Record
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
	top := filepath.Join(dir, Folder)
	runs, err := foldersIn(top)
	if err != nil {
		return f, err
	}
	for _, run := range runs {
		models, err := foldersIn(filepath.Join(top, run))
		if err != nil {
			return f, err
		}
		for _, model := range models {
			if err := f.read(top, run, model); err != nil {
				return f, err
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

// foldersIn are the names of the folders in one, by name.
func foldersIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read verdicts: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (f *Found) read(top, run, model string) error {
	dir := filepath.Join(top, run, model)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read verdicts: %w", err)
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		rec, err := readRecord(path)
		if err == nil && (rec.Instance != id || rec.RunID != run || strings.ReplaceAll(rec.Model, "/", "__") != model) {
			err = fmt.Errorf("%s is of another place: instance %.80q, run %.80q, model %.80q", path, rec.Instance, rec.RunID, rec.Model)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // replaced at this moment
		case err != nil:
			f.Unread = append(f.Unread, err.Error())
		default:
			f.Verdicts = append(f.Verdicts, Verdict{Path: path, Record: rec})
		}
	}
	return nil
}

func readRecord(path string) (evaluate.Record, error) {
	var rec evaluate.Record
	info, err := os.Lstat(path)
	if err != nil {
		return rec, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecord {
		return rec, fmt.Errorf("%s is not a plain file of at most %d MB", path, maxRecord>>20)
	}
	file, err := os.Open(path) //nolint:gosec // the folder is the user's choice
	if err != nil {
		return rec, err
	}
	defer file.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err == nil {
		err = json.Unmarshal(data, &rec)
	}
	switch {
	case err != nil:
		return rec, fmt.Errorf("read %s: %w", path, err)
	case rec.Format != evaluate.Format:
		return rec, fmt.Errorf("%s has the format %.40q, which this mini does not know", path, rec.Format)
	case !slices.Contains(evaluate.Classes(), rec.Class):
		return rec, fmt.Errorf("%s has the class %.40q, which this mini does not know", path, rec.Class)
	}
	return rec, nil
}

// Write replaces the file of a verdict in one piece.
func Write(dir *rootdir.Dir, v Verdict) error {
	data, err := json.MarshalIndent(v.Record, "", "  ")
	if err == nil {
		err = dir.WriteFile(v.Path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}
