package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/trajectories"
)

// Index is the list of a run's attempts from results.json and the names of the
// journals. Reading it is fast because journals are not opened.
type Index struct {
	Dir      string
	Manifest Manifest
	// WorkerPID is the process that has locked the folder; 0 if none.
	WorkerPID int
	// Attempts are ordered by instance and number.
	Attempts []IndexedAttempt
	// ReadErrors describe what could not be read.
	ReadErrors []string
}

// IndexedAttempt is an attempt in an index.
type IndexedAttempt struct {
	ID string
	Attempt
	// Selected reports that the attempt counts for its repetition. Other
	// attempts have no Result; ReadAttempt reads it.
	Selected bool
	// Newest reports that the attempt is the instance's last.
	Newest bool
}

// ReadIndex reads run.json, results.json and the names of the journals. Errors and
// untrusted folders are handled as in ReadRun.
func ReadIndex(dir string) (*Index, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == runFile || e.Name() == resultsFile || e.Name() == lockFile
	}) {
		return nil, fmt.Errorf("%s is %w: it has no %s and no %s", dir, ErrNotRunFolder, runFile, resultsFile)
	}
	r := &Run{Dir: dir}
	results := r.readResults()
	if !r.readManifest() && results.Format != trajectories.Format {
		return nil, errors.Join(fmt.Errorf("%s is %w: neither %s nor %s is one of mini's", dir, ErrNotRunFolder, runFile, resultsFile))
	}
	x := &Index{Dir: dir, Manifest: r.Manifest}
	f := &Folder{dir: dir}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		numbers, err := f.attempts(e.Name())
		if err != nil {
			r.addReadError(err)
		}
		res := results.Instances[e.Name()]
		delete(results.Instances, e.Name())
		x.add(f, e.Name(), numbers, res)
	}
	for id, res := range results.Instances { // journals were not copied with it
		x.add(nil, id, nil, res)
	}
	slices.SortStableFunc(x.Attempts, func(a, b IndexedAttempt) int {
		return cmp.Or(datasets.CompareNatural(a.ID, b.ID), cmp.Compare(a.Number, b.Number))
	})
	if n := len(x.Manifest.Sessions); n > 0 && x.Manifest.Sessions[n-1].Ended == nil {
		x.WorkerPID = workerPID(dir)
	}
	x.ReadErrors = r.ReadErrors
	return x, nil
}

// add adds an instance. A result without a journal counts as an attempt:
// results.json may have been copied alone.
func (x *Index) add(f *Folder, id string, numbers []int, res Result) {
	in := Instance{ID: id}
	in.setResults(res)
	for i, n := range numbers {
		a := IndexedAttempt{ID: id, Attempt: Attempt{Number: n, Journal: f.Journal(id, n), Repetition: 1}, Newest: i == len(numbers)-1}
		for j := range in.Repetitions {
			if s := &in.Repetitions[j]; s.Attempt == n {
				a.Selected, a.Result, a.Repetition = true, s, max(1, s.Repetition)
			}
		}
		x.Attempts = append(x.Attempts, a)
	}
	for j := range in.Repetitions {
		if s := &in.Repetitions[j]; !slices.Contains(numbers, s.Attempt) {
			x.Attempts = append(x.Attempts, IndexedAttempt{
				ID: id, Attempt: Attempt{Number: s.Attempt, Repetition: max(1, s.Repetition), Result: s}, Selected: true, Newest: len(numbers) == 0,
			})
		}
	}
}

// Locate returns the instance and attempt that a path in the run's folder belongs
// to; zero if it belongs to all. ok is false outside the folder.
func (x *Index) Locate(path string) (id string, attempt int, ok bool) {
	root, err := filepath.Abs(x.Dir)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	rel, relErr := filepath.Rel(root, path)
	if err != nil || relErr != nil || !filepath.IsLocal(rel) {
		return "", 0, false
	}
	for _, a := range x.Attempts {
		if a.Journal == "" {
			continue
		}
		within, err := filepath.Rel(x.Dir, a.Journal)
		if err == nil && (within == rel || filepath.Dir(within) == rel) {
			return a.ID, a.Number, true
		}
		if rel == a.ID || rel == filepath.Join(a.ID, attemptsDir) {
			return a.ID, 0, true
		}
	}
	return "", 0, true
}

// ReadAttempt reads an attempt from the start and the end of its journal, or from
// all of it if it has no outcome.
func ReadAttempt(journal string, number int) (Attempt, error) {
	a, _, err := readAttempt(journal, number)
	if err != nil {
		return a, fmt.Errorf("%s: %w", journal, err)
	}
	return a, nil
}
