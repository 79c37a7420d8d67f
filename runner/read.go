package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/trajectories"
)

// ErrNotRunFolder reports that a folder is not the folder of a run.
var ErrNotRunFolder = errors.New("not the folder of a run")

// Run is the contents of a run's folder at the time of ReadRun.
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
}

// Instance is one instance of a run.
type Instance struct {
	ID string
	// Result is the result of the selected attempt of the first repetition; nil
	// until an attempt of that repetition has ended.
	Result *Result
	// Repetitions are the results of all repetitions with an ended attempt, in
	// order, including the first.
	Repetitions []Result
	// Attempts are in order; empty if only results.json is present.
	Attempts []Attempt
}

// Attempt is one attempt and its journal.
type Attempt struct {
	Number     int
	Repetition int    // from 1; an attempt and its retries have the same repetition
	Journal    string // path; "" if the journal is missing
	// Result is nil while the attempt is running, and if its process was killed.
	Result *Result
	// Progress is the usage so far; set only without a Result.
	Progress Totals
}

// MissingResults returns how many of the given number of repetitions have no result.
func (in Instance) MissingResults(repetitions int) int {
	n := 0
	for rep := 1; rep <= repetitions; rep++ {
		if r := in.result(rep); r == nil || !r.Class.IsResult() {
			n++
		}
	}
	return n
}

func (in Instance) result(rep int) *Result {
	for i := range in.Repetitions {
		if in.Repetitions[i].Repetition == rep {
			return &in.Repetitions[i]
		}
	}
	return nil
}

// Model returns the model's name from the journal of an attempt; "" if unknown.
func (in Instance) Model(attempt int) string {
	for _, a := range in.Attempts {
		if a.Number == attempt {
			return headerOf(a.Journal).ModelName
		}
	}
	return ""
}

// Limits on the size of files that mini reads at once, in bytes.
const (
	maxManifest = 16 << 20
	maxResults  = 512 << 20
)

// ReadRun reads the folder of a run without locking it; a run may be in progress.
// It reads results from the journals, and from results.json the verdicts and the
// results without a journal. Run.ReadErrors lists the files that it could not read.
// The error wraps ErrNotRunFolder if dir is not the folder of a run.
func ReadRun(dir string) (*Run, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file, and %w", dir, ErrNotRunFolder)
	}
	f := &Folder{dir: dir}
	ids, err := f.instanceIDs()
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir}
	results := r.readResults()
	hasRunFiles := r.readManifest() || len(ids) > 0 || results.Format == trajectories.Format
	if _, err := os.Lstat(filepath.Join(dir, lockFile)); err != nil && !hasRunFiles {
		return nil, fmt.Errorf("%s is %w: it has no %s, no %s and no attempts of instances", dir, ErrNotRunFolder, runFile, resultsFile)
	}
	r.Instances = r.readInstances(f, ids, results.Instances)
	for _, id := range ids {
		delete(results.Instances, id)
	}
	for id, res := range results.Instances { // their journals are missing
		in := Instance{ID: id}
		in.setResults(res)
		r.Instances = append(r.Instances, in)
	}
	slices.SortFunc(r.Instances, func(a, b Instance) int { return datasets.CompareNatural(a.ID, b.ID) })
	if n := len(r.Manifest.Sessions); n > 0 && r.Manifest.Sessions[n-1].Ended == nil {
		r.WorkerPID = workerPID(dir)
	}
	return r, nil
}

func (r *Run) readManifest() bool {
	err := readJSON(filepath.Join(r.Dir, runFile), maxManifest, &r.Manifest)
	if err != nil {
		r.Manifest = Manifest{}
		r.addReadError(err)
	}
	return r.Manifest.Format != ""
}

func (r *Run) readResults() Results {
	var res Results
	if err := readJSON(filepath.Join(r.Dir, resultsFile), maxResults, &res); err != nil {
		r.addReadError(err)
		return Results{}
	}
	return res
}

// readInstances reads the attempts of instances, on all processors, because a large
// run has thousands of journals.
func (r *Run) readInstances(f *Folder, ids []string, results map[string]Result) []Instance {
	instances, errs := make([]Instance, len(ids)), make([][]error, len(ids))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(ids); i = int(next.Add(1)) - 1 {
				instances[i], errs[i] = readInstance(f, ids[i], results)
			}
		})
	}
	workers.Wait()
	for _, err := range slices.Concat(errs...) {
		r.addReadError(err)
	}
	return instances
}

// readInstance reads the attempts of an instance and selects among them as a Batch
// does.
func readInstance(f *Folder, id string, results map[string]Result) (in Instance, errs []error) {
	in.ID = id
	numbers, err := f.attempts(id)
	if err != nil {
		errs = append(errs, err)
	}
	ir := &instanceResults{repetitions: map[int]*repetition{}}
	for _, n := range numbers {
		a, out, err := readAttempt(f.Journal(id, n), n)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("attempt %d of %s: %w", n, id, err))
		case a.Result != nil:
			ir.add(a.Repetition, n, out)
		}
		in.Attempts = append(in.Attempts, a)
	}
	written, ok := results[id]
	switch {
	case len(ir.repetitions) > 0:
		ir.lastAttempt = numbers[len(numbers)-1]
		in.setResults(ir.result())
		in.copyVerdicts(written)
	case ok && len(in.Attempts) == 0:
		in.setResults(written)
	}
	return in, errs
}

// readAttempt reads the start and end of a journal, or the whole journal if it has
// no outcome.
func readAttempt(journal string, n int) (Attempt, trajectories.Outcome, error) {
	a := Attempt{Number: n, Journal: journal, Repetition: 1}
	out, ok, err := lastOutcome(journal)
	if err != nil {
		return a, out, err
	}
	h := headerOf(journal)
	a.Repetition = repetitionOf(h)
	switch {
	case ok && h.Format == "":
		return a, out, errors.New("ignored: its journal has no header")
	case ok:
		a.Result = withoutPatch((&repetition{attempt: n, outcome: out}).result(n))
	default:
		a.Progress = sumJournal(journal)
	}
	return a, out, nil
}

// setResults sets the results of an instance, without patches to save memory. It
// drops invalid repetitions, because results.json is not trusted.
func (in *Instance) setResults(res Result) {
	in.Repetitions = slices.DeleteFunc(res.Repetitions, func(r Result) bool { return r.Repetition < 1 || r.Repetition > MaxRepetitions })
	res.Repetitions = nil
	for i := range in.Repetitions {
		in.Repetitions[i].PartialPatch = nil
	}
	if res.Class == "" {
		return
	}
	in.Result = withoutPatch(res)
	if len(in.Repetitions) == 0 {
		first := *in.Result
		first.Repetition = 1
		in.Repetitions = []Result{first}
	}
}

// withoutPatch returns a result without its patch.
func withoutPatch(res Result) *Result {
	res.PartialPatch = nil
	return &res
}

// copyVerdicts copies the verdicts on the selected attempts from written, the
// result in results.json.
func (in *Instance) copyVerdicts(written Result) {
	for _, result := range append(written.Repetitions, written) {
		if result.Class == "" {
			continue
		}
		if in.Result != nil && in.Result.Attempt == result.Attempt {
			in.Result.Verdict, in.Result.Rewards = result.Verdict, result.Rewards
		}
		for i := range in.Repetitions {
			if own := &in.Repetitions[i]; own.Attempt == result.Attempt {
				own.Verdict, own.Rewards = result.Verdict, result.Rewards
			}
		}
	}
}

// lastOutcome calls trajectories.ReadOutcome after a check that the journal is a
// regular file. In an untrusted folder it could be a pipe, which blocks.
func lastOutcome(journal string) (trajectories.Outcome, bool, error) {
	info, err := os.Lstat(journal)
	if errors.Is(err, os.ErrNotExist) {
		return trajectories.Outcome{}, false, nil // the attempt is being created
	}
	if err != nil {
		return trajectories.Outcome{}, false, err
	}
	if !info.Mode().IsRegular() {
		return trajectories.Outcome{}, false, errors.New("its journal is not a plain file")
	}
	return trajectories.ReadOutcome(journal)
}

// addReadError records an error, unless it reports a missing file.
func (r *Run) addReadError(err error) {
	if !errors.Is(err, os.ErrNotExist) {
		r.ReadErrors = append(r.ReadErrors, err.Error())
	}
}

// readJSON reads a JSON file of at most limit bytes.
func readJSON(path string, limit int64, v any) error {
	data, err := readRegularFile(path, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// readRegularFile reads a file of at most limit bytes. It rejects links and pipes,
// because the folder is not trusted.
func readRegularFile(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s is not a plain file of at most %d MB", path, max(limit>>20, 1))
	}
	f, err := os.Open(path) //nolint:gosec // the folder is the user's choice
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	return io.ReadAll(io.LimitReader(f, limit))
}

// Files returns the paths of an instance's trajectory, if it exists, and journals.
func (r *Run) Files(in Instance) []string {
	var paths []string
	if len(in.Attempts) == 0 {
		return nil // the ID is from results.json, which is not trusted
	}
	f := &Folder{dir: r.Dir}
	if info, err := os.Lstat(f.trajectoryPath(in.ID)); err == nil && info.Mode().IsRegular() {
		paths = append(paths, f.trajectoryPath(in.ID))
	}
	for _, a := range in.Attempts {
		paths = append(paths, a.Journal)
	}
	return paths
}
