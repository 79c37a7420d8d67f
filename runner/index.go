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

// Index lists the attempts of a run. ReadIndex builds it from results.json and the
// paths of the journals; it is fast because it does not open journals.
type Index struct {
	Dir      string
	Manifest Manifest
	// WorkerPID is the live process that works in the folder; 0 if none.
	WorkerPID int
	// Attempts are ordered by instance and number.
	Attempts []IndexedAttempt
	// ReadErrors are the errors of files that could not be read.
	ReadErrors []string
}

// IndexedAttempt is an attempt in an index.
type IndexedAttempt struct {
	ID string
	Attempt
	// Selected reports whether the attempt counts for its repetition. Result is
	// nil in other attempts; ReadAttempt reads it from the journal.
	Selected bool
	// Newest reports whether the attempt is the instance's last.
	Newest bool
}

// ReadIndex reads run.json, results.json and the paths of the journals. It handles
// errors and untrusted folders as ReadRun does.
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
		return nil, errors.Join(fmt.Errorf("%s is %w: mini wrote neither its %s nor its %s", dir, ErrNotRunFolder, runFile, resultsFile))
	}
	index := &Index{Dir: dir, Manifest: r.Manifest}
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
		index.add(f, e.Name(), numbers, res)
	}
	for id, res := range results.Instances { // their journals are missing
		index.add(nil, id, nil, res)
	}
	slices.SortStableFunc(index.Attempts, func(a, b IndexedAttempt) int {
		return cmp.Or(datasets.CompareNatural(a.ID, b.ID), cmp.Compare(a.Number, b.Number))
	})
	if n := len(index.Manifest.Sessions); n > 0 && index.Manifest.Sessions[n-1].Ended == nil {
		index.WorkerPID = workerPID(dir)
	}
	index.ReadErrors = r.ReadErrors
	return index, nil
}

// add adds the attempts of an instance. A result without a journal counts as an
// attempt, because results.json may have been copied without the journals.
func (index *Index) add(f *Folder, id string, numbers []int, res Result) {
	in := Instance{ID: id}
	in.setResults(res)
	for i, n := range numbers {
		a := IndexedAttempt{ID: id, Attempt: Attempt{Number: n, Journal: f.Journal(id, n), Repetition: 1}, Newest: i == len(numbers)-1}
		for j := range in.Repetitions {
			if result := &in.Repetitions[j]; result.Attempt == n {
				a.Selected, a.Result, a.Repetition = true, result, max(1, result.Repetition)
			}
		}
		index.Attempts = append(index.Attempts, a)
	}
	for j := range in.Repetitions {
		if result := &in.Repetitions[j]; !slices.Contains(numbers, result.Attempt) {
			index.Attempts = append(index.Attempts, IndexedAttempt{
				ID: id, Attempt: Attempt{Number: result.Attempt, Repetition: max(1, result.Repetition), Result: result}, Selected: true, Newest: len(numbers) == 0,
			})
		}
	}
}

// Locate returns the instance and attempt of a path in the run's folder. attempt is
// 0 for a path of a whole instance, and id is "" for any other path in the folder.
// ok is false for a path outside the folder.
func (index *Index) Locate(path string) (id string, attempt int, ok bool) {
	root, err := filepath.Abs(index.Dir)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	rel, relErr := filepath.Rel(root, path)
	if err != nil || relErr != nil || !filepath.IsLocal(rel) {
		return "", 0, false
	}
	for _, a := range index.Attempts {
		if a.Journal == "" {
			continue
		}
		journal, err := filepath.Rel(index.Dir, a.Journal)
		if err == nil && (journal == rel || filepath.Dir(journal) == rel) {
			return a.ID, a.Number, true
		}
		if rel == a.ID || rel == filepath.Join(a.ID, attemptsDir) {
			return a.ID, 0, true
		}
	}
	return "", 0, true
}

// ReadAttempt reads an attempt from the start and the end of its journal, or from
// the whole journal if it has no outcome.
func ReadAttempt(journal string, number int) (Attempt, error) {
	a, _, err := readAttempt(journal, number)
	if err != nil {
		return a, fmt.Errorf("%s: %w", journal, err)
	}
	return a, nil
}
