package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/trajectories"
)

// ErrNoRun says that a folder holds nothing that a run leaves.
var ErrNoRun = errors.New("not the folder of a run")

// Run is what the folder of a run holds, as it was when it was read.
type Run struct {
	Dir string
	// Manifest is run.json; its Format is empty where there is none.
	Manifest Manifest
	// Instances are those with an attempt or a line in results.json, by id.
	Instances []Instance
	// Worker is the process that holds the folder; 0 where none does.
	Worker int
	// Unread says what could not be read, a sentence each.
	Unread []string
}

// Instance is what a run holds of one instance.
type Instance struct {
	ID string
	// Result is that of the selected attempt, at the first sample where several
	// were asked for; nil while no attempt at it has ended.
	Result *Result
	// Samples are the results of all samples of which an attempt has ended, in
	// order, the first too.
	Samples []Result
	// Attempts are in order. There are none where only results.json is left.
	Attempts []Attempt
}

// Attempt is one attempt and where its journal is.
type Attempt struct {
	Number  int
	Sample  int // which of those that were asked for it is a try of, from 1 on
	Journal string
	// Result is nil for an attempt that has not ended, or never will: its
	// mini was killed.
	Result *Result
	// So far is what an attempt without a result has come to.
	SoFar Tally
}

// Missing is how many of so many results, each for a sample of its own, an
// instance does not have.
func (in Instance) Missing(samples int) int {
	n := 0
	for k := 1; k <= samples; k++ {
		if r := in.result(k); r == nil || !r.Class.Counts() {
			n++
		}
	}
	return n
}

func (in Instance) result(sample int) *Result {
	for i := range in.Samples {
		if in.Samples[i].Sample == sample {
			return &in.Samples[i]
		}
	}
	return nil
}

// Model is what an attempt was made with, by its journal; empty where that does
// not say.
func (in Instance) Model(attempt int) string {
	for _, a := range in.Attempts {
		if a.Number == attempt {
			return headerOf(a.Journal).ModelName
		}
	}
	return ""
}

// Bounds on the files of a run that are read whole, in bytes.
const (
	maxManifest = 16 << 20
	maxResults  = 512 << 20
)

// ReadRun reads the folder of a run without taking it: a mini may be working
// there. The journals are the truth; results.json adds what they do not say,
// and stands in for those that are missing. What cannot be read is left out
// and named in Unread. The error wraps ErrNoRun where the folder is something
// else.
func ReadRun(dir string) (*Run, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file, and %w", dir, ErrNoRun)
	}
	f := &Folder{dir: dir}
	ids, err := f.ids()
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir}
	results := r.readResults()
	known := r.readManifest() || len(ids) > 0 || results.Format == trajectories.Format
	if _, err := os.Lstat(filepath.Join(dir, lockFile)); err != nil && !known {
		return nil, fmt.Errorf("%s is %w: it has no %s, no %s and no attempts of instances", dir, ErrNoRun, runFile, resultsFile)
	}
	for _, id := range ids {
		r.Instances = append(r.Instances, r.readInstance(f, id, results.Instances))
		delete(results.Instances, id)
	}
	for id, res := range results.Instances { // journals that were not copied along
		in := Instance{ID: id}
		in.take(res)
		r.Instances = append(r.Instances, in)
	}
	slices.SortFunc(r.Instances, func(a, b Instance) int { return datasets.Natural(a.ID, b.ID) })
	if n := len(r.Manifest.Sessions); n > 0 && r.Manifest.Sessions[n-1].Ended == nil {
		r.Worker = worker(dir)
	}
	return r, nil
}

func (r *Run) readManifest() bool {
	err := readJSON(filepath.Join(r.Dir, runFile), maxManifest, &r.Manifest)
	if err != nil {
		r.Manifest = Manifest{}
		r.unread(err)
	}
	return r.Manifest.Format != ""
}

func (r *Run) readResults() Results {
	var res Results
	if err := readJSON(filepath.Join(r.Dir, resultsFile), maxResults, &res); err != nil {
		r.unread(err)
		return Results{}
	}
	return res
}

// readInstance selects among attempts as a run does.
func (r *Run) readInstance(f *Folder, id string, results map[string]Result) Instance {
	in := Instance{ID: id}
	numbers, err := f.attempts(id)
	if err != nil {
		r.unread(err)
	}
	e := &entry{samples: map[int]*sample{}}
	for _, n := range numbers {
		a, out, err := readAttempt(f.Journal(id, n), n)
		switch {
		case err != nil:
			r.unread(fmt.Errorf("attempt %d of %s: %w", n, id, err))
		case a.Result != nil:
			e.take(a.Sample, n, out)
		}
		in.Attempts = append(in.Attempts, a)
	}
	written, ok := results[id]
	switch {
	case len(e.samples) > 0:
		e.last = numbers[len(numbers)-1]
		in.take(e.result())
		in.adopt(written)
	case ok && len(in.Attempts) == 0:
		in.take(written)
	}
	return in
}

// readAttempt reads the two ends of a journal, and all of one without an outcome.
func readAttempt(journal string, n int) (Attempt, trajectories.Outcome, error) {
	a := Attempt{Number: n, Journal: journal, Sample: 1}
	out, ok, err := last(journal)
	if err != nil {
		return a, out, err
	}
	h := headerOf(journal)
	a.Sample = sampleOf(h)
	switch {
	case ok && h.Format == "":
		return a, out, errors.New("it counts for nothing: its journal has no header")
	case ok:
		a.Result = brief((&sample{selected: n, outcome: out}).result(n))
	default:
		a.SoFar = tally(journal)
	}
	return a, out, nil
}

// take takes over what stands in results.json, without the patches: a run may
// have thousands. It may be anybody's.
func (in *Instance) take(res Result) {
	in.Samples = slices.DeleteFunc(res.Samples, func(r Result) bool { return r.Sample < 1 || r.Sample > MaxSamples })
	res.Samples = nil
	for i := range in.Samples {
		in.Samples[i].PartialPatch = nil
	}
	if res.Class == "" {
		return
	}
	in.Result = brief(res)
	if len(in.Samples) == 0 {
		first := *in.Result
		first.Sample = 1
		in.Samples = []Result{first}
	}
}

// brief is a result without its patch.
func brief(res Result) *Result {
	res.PartialPatch = nil
	return &res
}

// adopt takes over the verdicts that results.json has, where they are on the
// same attempts.
func (in *Instance) adopt(written Result) {
	for _, w := range append(written.Samples, written) {
		if w.Class == "" {
			continue
		}
		if in.Result != nil && in.Result.Attempt == w.Attempt {
			in.Result.Verdict = w.Verdict
		}
		for i := range in.Samples {
			if s := &in.Samples[i]; s.Attempt == w.Attempt {
				s.Verdict = w.Verdict
			}
		}
	}
}

// last is trajectories.Last for a folder that may come from a stranger, whose
// journal could be a pipe that nobody writes to.
func last(journal string) (trajectories.Outcome, bool, error) {
	info, err := os.Lstat(journal)
	if errors.Is(err, os.ErrNotExist) {
		return trajectories.Outcome{}, false, nil // about to be made
	}
	if err != nil {
		return trajectories.Outcome{}, false, err
	}
	if !info.Mode().IsRegular() {
		return trajectories.Outcome{}, false, errors.New("its journal is not a plain file")
	}
	return trajectories.Last(journal)
}

// unread notes an error. That a file is not there is none.
func (r *Run) unread(err error) {
	if !errors.Is(err, os.ErrNotExist) {
		r.Unread = append(r.Unread, err.Error())
	}
}

// readJSON reads a file of at most limit bytes.
func readJSON(path string, limit int64, v any) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return fmt.Errorf("%s is not a plain file of at most %d MB", path, limit>>20)
	}
	f, err := os.Open(path) //nolint:gosec // the folder is the user's choice
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// Files are the paths a user may want to open, those that exist.
func (r *Run) Files(in Instance) []string {
	var paths []string
	if len(in.Attempts) == 0 {
		return nil // the id is only a word in results.json, and no path
	}
	f := &Folder{dir: r.Dir}
	if info, err := os.Lstat(f.traj(in.ID)); err == nil && info.Mode().IsRegular() {
		paths = append(paths, f.traj(in.ID))
	}
	for _, a := range in.Attempts {
		paths = append(paths, a.Journal)
	}
	return paths
}
