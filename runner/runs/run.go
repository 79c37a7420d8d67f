// Package runs reads the folders of runs. A folder is not trusted, and a run may be
// in progress in it.
//
//	run, err := runs.Open("runs/first") // run.json, results.json and the paths of the journals
//	run.Load()                          // also the journals: all outcomes and totals
package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/labels"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// ErrNotRunFolder reports that a folder is not the folder of a run.
var ErrNotRunFolder = errors.New("not the folder of a run")

// Run is the contents of a run's folder at the time of Open.
type Run struct {
	Dir string
	// Manifest is run.json; its Format is empty if the file is missing.
	Manifest Manifest
	// Instances are those with an attempt or an entry in results.json, ordered by
	// ID.
	Instances []Instance
	// WorkerPID is the live process that works in the folder; 0 if none.
	WorkerPID int
	// ReadErrors are the errors of files that could not be read.
	ReadErrors []string

	verdicts func() (verdicts.Set, error) // nil before Verdicts
}

// Open reads run.json, results.json and the paths of the journals without locking the
// folder. The results are those of results.json until Load. Run.ReadErrors lists the
// files that cannot be read. The error wraps ErrNotRunFolder if dir is not the folder
// of a run.
func Open(dir string) (*Run, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file, and %w", dir, ErrNotRunFolder)
	}
	return open(dir, false)
}

// Detect is Open for a folder that a search has found: attempts alone do not make it
// the folder of a run.
func Detect(dir string) (*Run, error) { return open(dir, true) }

func open(dir string, strict bool) (*Run, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if strict && !slices.ContainsFunc(entries, isFile(datasets.RunFile, datasets.ResultsFile, LockFile)) {
		return nil, fmt.Errorf("%s is %w: it has no %s and no %s", dir, ErrNotRunFolder, datasets.RunFile, datasets.ResultsFile)
	}
	r, listed := &Run{Dir: dir}, Layout{Dir: dir}.listIn(entries)
	switch known := r.read(listed); {
	case known, !strict && (len(listed) > 0 || slices.ContainsFunc(entries, isFile(LockFile))):
		return r, nil
	case strict:
		return nil, fmt.Errorf("%s is %w: mini wrote neither its %s nor its %s", dir, ErrNotRunFolder, datasets.RunFile, datasets.ResultsFile)
	}
	return nil, fmt.Errorf("%s is %w: it has no %s, no %s and no attempts of instances", dir, ErrNotRunFolder, datasets.RunFile, datasets.ResultsFile)
}

func isFile(names ...string) func(fs.DirEntry) bool {
	return func(e fs.DirEntry) bool { return slices.Contains(names, e.Name()) }
}

// Read is Open and Load.
func Read(dir string) (*Run, error) {
	r, err := Open(dir)
	if err == nil {
		r.Load()
	}
	return r, err
}

// read reads the files of the run and reports whether mini wrote one of them.
func (r *Run) read(listed []Listed) (known bool) {
	results, err := ReadResults(r.Dir)
	if err != nil {
		r.addReadError(err)
		results = Results{}
	}
	if err := readJSON(filepath.Join(r.Dir, datasets.RunFile), MaxManifest, &r.Manifest); err != nil {
		r.addReadError(err)
		r.Manifest = Manifest{}
	}
	known = r.Manifest.Format != "" || results.Format == trajectories.Format
	for _, l := range listed {
		r.addReadError(l.Err)
		r.Instances = append(r.Instances, newInstance(r.Dir, l, results.Instances[l.ID]))
		delete(results.Instances, l.ID)
	}
	for id, res := range results.Instances { // their journals are missing
		r.Instances = append(r.Instances, newInstance(r.Dir, Listed{ID: id}, res))
	}
	slices.SortFunc(r.Instances, func(a, b Instance) int { return datasets.CompareNatural(a.ID, b.ID) })
	if n := len(r.Manifest.Sessions); n > 0 && r.Manifest.Sessions[n-1].Ended == nil {
		r.WorkerPID = workerPID(r.Dir)
	}
	return known
}

// addReadError records an error, unless it reports a missing file.
func (r *Run) addReadError(err error) {
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.ReadErrors = append(r.ReadErrors, err.Error())
	}
}

// Load reads the outcomes of all attempts from their journals, on all processors,
// because a large run has thousands of journals. results.json keeps its say about the
// verdicts, and about the instances without a journal.
func (r *Run) Load() {
	errs := make([][]error, len(r.Instances))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(errs); i = int(next.Add(1)) - 1 {
				errs[i] = r.Instances[i].load()
			}
		})
	}
	workers.Wait()
	for _, err := range slices.Concat(errs...) {
		r.addReadError(err)
	}
}

// Find returns the instance with an ID; false if the run has no attempt at it.
func (r *Run) Find(id string) (Instance, bool) {
	i := slices.IndexFunc(r.Instances, func(in Instance) bool { return in.ID == id })
	if i < 0 {
		return Instance{}, false
	}
	return r.Instances[i], true
}

// Locate returns the instance and attempt of a path in the run's folder. attempt is
// 0 for a path of a whole instance, and id is "" for any other path in the folder.
// ok is false for a path outside the folder.
func (r *Run) Locate(path string) (id string, attempt int, ok bool) {
	root, err := filepath.Abs(r.Dir)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	rel, relErr := filepath.Rel(root, path)
	if err != nil || relErr != nil || !filepath.IsLocal(rel) {
		return "", 0, false
	}
	for _, in := range r.Instances {
		for _, a := range in.Attempts {
			journal := Layout{}.Journal(in.ID, a.Number)
			switch rel {
			case journal, filepath.Dir(journal):
				return in.ID, a.Number, true
			case in.ID, filepath.Join(in.ID, attemptsDir):
				return in.ID, 0, true
			}
		}
	}
	return "", 0, true
}

// Files returns the paths of an instance's trajectory, if it exists, and journals.
func (r *Run) Files(in Instance) []string {
	var paths []string
	if len(in.Attempts) == 0 {
		return nil // the ID is from results.json, which is not trusted
	}
	trajectory := Layout{Dir: r.Dir}.Trajectory(in.ID)
	if info, err := os.Lstat(trajectory); err == nil && info.Mode().IsRegular() {
		paths = append(paths, trajectory)
	}
	for _, a := range in.Attempts {
		paths = append(paths, a.Journal)
	}
	return paths
}

// Verdicts returns the verdict records of the run. It reads them once.
func (r *Run) Verdicts() (verdicts.Set, error) {
	if r.verdicts == nil {
		r.verdicts = sync.OnceValues(func() (verdicts.Set, error) { return verdicts.Read(r.Dir) })
	}
	return r.verdicts()
}

// Labels reads the labels of the instances.
func (r *Run) Labels() (labels.Labels, error) { return labels.Read(r.Dir) }

// Submission is the submission of one repetition of an instance.
type Submission struct {
	Repetition int
	trajectories.Prediction
}

// ExtraSubmissions returns the submissions of all repetitions except the first,
// which is in preds.json. They are ordered by instance and repetition. The error
// names the attempts whose outcome cannot be read; the other submissions are
// returned too.
func (r *Run) ExtraSubmissions() (all []Submission, errs error) {
	for _, in := range r.Instances {
		for _, res := range in.Repetitions {
			if res.Repetition == 1 || !res.Class.IsResult() {
				continue
			}
			err := fmt.Errorf("%s has no attempt %d", in.ID, res.Attempt)
			var p trajectories.Prediction
			if a := in.Attempt(res.Attempt); a != nil {
				p, err = a.Prediction(in.ID)
			}
			if err != nil {
				errs = errors.Join(errs, err)
				continue
			}
			all = append(all, Submission{Repetition: res.Repetition, Prediction: p})
		}
	}
	return all, errs
}

// Version identifies the state of a run's folder. A run changes results.json when an
// attempt ends and events.jsonl at every step; an evaluation adds records below its
// folder of verdicts.
func Version(dir string) string {
	h := sha256.New()
	paths, _ := filepath.Glob(filepath.Join(dir, verdicts.DirName, "*", "*")) // the pattern is valid
	for _, name := range []string{datasets.RunFile, datasets.ResultsFile, datasets.PredsFile, datasets.LabelsFile, datasets.EventsFile} {
		paths = append(paths, filepath.Join(dir, name))
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			_, _ = fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// WallTime returns the total duration of all sessions. It counts a killed session up
// to its last record, and a running one up to now.
func (r *Run) WallTime(now time.Time) time.Duration {
	var sum time.Duration
	sessions := r.Manifest.Sessions
	for i, s := range sessions {
		var end time.Time
		switch {
		case s.Ended != nil:
			end = *s.Ended
		case i == len(sessions)-1 && r.WorkerPID > 0:
			end = now
		case i == len(sessions)-1:
			end = r.lastActivity(now)
		default:
			end = r.lastActivity(sessions[i+1].Started)
		}
		sum += max(0, end.Sub(s.Started))
	}
	return sum
}

// lastActivity returns the latest end of an attempt before the given time. An
// attempt without an outcome ends at its last record.
func (r *Run) lastActivity(before time.Time) time.Time {
	var newest time.Time
	for _, in := range r.Instances {
		for _, a := range in.Attempts {
			t := a.Totals().End
			if t.After(newest) && t.Before(before) {
				newest = t
			}
		}
	}
	return newest
}
