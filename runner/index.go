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

// Index is what the folder of a run says of its attempts without their journals:
// what results.json has, and which journals are there. It is read at once, however
// large these are.
type Index struct {
	Dir      string
	Manifest Manifest
	// Worker is the process that holds the folder; 0 where none does.
	Worker int
	// Attempts are in the order of instances, and then of numbers.
	Attempts []Indexed
	// Unread says what could not be read, a sentence each.
	Unread []string
}

// Indexed is an attempt of an index.
type Indexed struct {
	ID string
	Attempt
	// Selected says that it is the one that counts, of its sample. Those that are
	// not have no result here: ReadAttempt has it.
	Selected bool
	// Newest says that no later attempt at the instance is there.
	Newest bool
}

// ReadIndex reads run.json and results.json, and the names of journals. What
// ReadRun says of strangers' folders and of errors holds here too.
func ReadIndex(dir string) (*Index, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == runFile || e.Name() == resultsFile || e.Name() == lockFile
	}) {
		return nil, fmt.Errorf("%s is %w: it has no %s and no %s", dir, ErrNoRun, runFile, resultsFile)
	}
	r := &Run{Dir: dir}
	results := r.readResults()
	if !r.readManifest() && results.Format != trajectories.Format {
		return nil, errors.Join(fmt.Errorf("%s is %w: neither %s nor %s is one of mini's", dir, ErrNoRun, runFile, resultsFile))
	}
	x := &Index{Dir: dir, Manifest: r.Manifest}
	f := &Folder{dir: dir}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		numbers, err := f.attempts(e.Name())
		if err != nil {
			r.unread(err)
		}
		res := results.Instances[e.Name()]
		delete(results.Instances, e.Name())
		x.add(f, e.Name(), numbers, res)
	}
	for id, res := range results.Instances { // journals that were not copied along
		x.add(nil, id, nil, res)
	}
	slices.SortStableFunc(x.Attempts, func(a, b Indexed) int {
		return cmp.Or(datasets.Natural(a.ID, b.ID), cmp.Compare(a.Number, b.Number))
	})
	if n := len(x.Manifest.Sessions); n > 0 && x.Manifest.Sessions[n-1].Ended == nil {
		x.Worker = worker(dir)
	}
	x.Unread = r.Unread
	return x, nil
}

// add takes in an instance. A result without a journal is an attempt too, as
// results.json may be all that was kept.
func (x *Index) add(f *Folder, id string, numbers []int, res Result) {
	in := Instance{ID: id}
	in.take(res)
	for i, n := range numbers {
		a := Indexed{ID: id, Attempt: Attempt{Number: n, Journal: f.Journal(id, n), Sample: 1}, Newest: i == len(numbers)-1}
		for j := range in.Samples {
			if s := &in.Samples[j]; s.Attempt == n {
				a.Selected, a.Result, a.Sample = true, s, max(1, s.Sample)
			}
		}
		x.Attempts = append(x.Attempts, a)
	}
	for j := range in.Samples {
		if s := &in.Samples[j]; !slices.Contains(numbers, s.Attempt) {
			x.Attempts = append(x.Attempts, Indexed{
				ID: id, Attempt: Attempt{Number: s.Attempt, Sample: max(1, s.Sample), Result: s}, Selected: true, Newest: len(numbers) == 0,
			})
		}
	}
}

// Has says whether a file or folder is within the run's own, and which instance
// and attempt it is of; zero where it is of all.
func (x *Index) Has(path string) (id string, attempt int, ok bool) {
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

// ReadAttempt completes an attempt from the two ends of its journal, or from all
// of it where it has no outcome.
func ReadAttempt(journal string, number int) (Attempt, error) {
	a, _, err := readAttempt(journal, number)
	if err != nil {
		return a, fmt.Errorf("%s: %w", journal, err)
	}
	return a, nil
}
