package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// resultStore holds the attempt numbers of all instances in a run's folder and the
// outcomes of the selected attempts. It writes results.json and preds.json.
type resultStore struct {
	folder    *Folder
	modelName string

	mu         sync.Mutex
	instances  map[string]*instanceResults
	cost       model.Cost // of the attempts recorded since opening
	unpriced   int64      // calls of unknown cost in these attempts
	written    time.Time  // last write of the derived files
	readErrors []error    // of journals that are ignored and trajectories not written
}

// instanceResults holds the results of one instance.
type instanceResults struct {
	lastAttempt    int         // highest attempt number
	newestAttempts map[int]int // repetition -> newest attempt, ended or not
	selected       runs.Selection
}

// flushInterval is the minimum time between two writes of results.json and
// preds.json while attempts are recorded. Each write replaces the whole files.
const flushInterval = time.Second

// openResultStore reads the outcomes of the attempts in the folder. It ignores
// attempts without an outcome, whose process was killed.
func (f *Folder) openResultStore(modelName string) (*resultStore, error) {
	rs := &resultStore{folder: f, modelName: modelName, instances: map[string]*instanceResults{}}
	err := f.eachAttempt(func(id string, n int) error {
		_, err := rs.load(id, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	rs.refreshTrajectories()
	return rs, rs.flush()
}

// eachAttempt calls visit for the attempts in the folder, until it returns an error.
func (f *Folder) eachAttempt(visit func(id string, n int) error) error {
	listed, err := f.List()
	for _, l := range listed {
		if l.Err != nil {
			return l.Err
		}
		for _, n := range l.Attempts {
			if err := visit(l.ID, n); err != nil {
				return err
			}
		}
	}
	return err
}

// load adds one attempt from its journal. It ignores a journal without a header:
// its process was killed while creating it. The outcome is nil if there is none.
func (rs *resultStore) load(id string, n int) (*trajectories.Outcome, error) {
	h, out, ok, err := runs.ReadEnds(rs.folder.Journal(id, n))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", attemptName(id, n), err)
	}
	ir := rs.instance(id)
	ir.lastAttempt = max(ir.lastAttempt, n)
	if h.Format == "" {
		if ok {
			rs.readErrors = append(rs.readErrors, fmt.Errorf("%s is ignored: its journal has no header", attemptName(id, n)))
		}
		return nil, nil //nolint:nilnil // no outcome
	}
	rep := runs.RepetitionOf(h)
	ir.newestAttempts[rep] = n
	if !ok {
		return nil, nil //nolint:nilnil // no outcome
	}
	ir.selected.Add(rep, runs.Ended{Attempt: n, Model: cmp.Or(h.ModelName, rs.modelName), Outcome: out})
	return &out, nil
}

// refreshTrajectories writes trajectories that are missing or older than their
// journal. This happens if the process was killed after it wrote the journal.
func (rs *resultStore) refreshTrajectories() {
	for id, ir := range rs.instances {
		selected, ok := ir.selected[1]
		if !ok {
			continue
		}
		journal, err := os.Lstat(rs.folder.Journal(id, selected.Attempt))
		if err != nil {
			continue
		}
		trajectory, err := os.Lstat(rs.folder.Trajectory(id))
		if err == nil && !trajectory.ModTime().Before(journal.ModTime()) {
			continue
		}
		if err := rs.writeTrajectory(id, selected.Attempt); err != nil {
			rs.readErrors = append(rs.readErrors, fmt.Errorf("%s: %w", attemptName(id, selected.Attempt), err))
		}
	}
}

func (rs *resultStore) instance(id string) *instanceResults {
	ir := rs.instances[id]
	if ir == nil {
		ir = &instanceResults{newestAttempts: map[int]int{}, selected: runs.Selection{}}
		rs.instances[id] = ir
	}
	return ir
}

// nextAttempt reserves the number of a new attempt of a task.
func (rs *resultStore) nextAttempt(t *task) int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	ir := rs.instance(t.ID)
	ir.lastAttempt++
	ir.newestAttempts[t.repetition] = ir.lastAttempt
	return ir.lastAttempt
}

// nextRepetition reserves the next attempt number n and a new repetition for it.
// rep equals n, unless a repetition with this or a higher number exists.
func (rs *resultStore) nextRepetition(id string) (n, rep int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	ir := rs.instance(id)
	ir.lastAttempt++
	rep = ir.lastAttempt
	for used := range ir.newestAttempts {
		rep = max(rep, used+1)
	}
	return ir.lastAttempt, rep
}

// hasResult reports whether a repetition of an instance has a result.
func (rs *resultStore) hasResult(id string, rep int) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	ir := rs.instances[id]
	return ir != nil && ir.selected.HasResult(rep)
}

// record adds the outcome of an attempt. It writes the trajectory if the attempt is
// the selected one of the first repetition, and the other derived files if
// flushInterval has passed since the last write.
func (rs *resultStore) record(id string, rep, n int, out trajectories.Outcome) error {
	rs.mu.Lock()
	ir := rs.instance(id)
	ir.lastAttempt = max(ir.lastAttempt, n)
	selected := ir.selected.Add(rep, runs.Ended{Attempt: n, Model: rs.modelName, Outcome: out})
	rs.cost, rs.unpriced = rs.cost+out.Cost, rs.unpriced+out.Usage.Unpriced
	due := time.Since(rs.written) >= flushInterval
	rs.mu.Unlock()

	if selected && rep == 1 {
		if err := rs.writeTrajectory(id, n); err != nil {
			return err
		}
	}
	if due {
		return rs.flush()
	}
	return nil
}

func (rs *resultStore) writeTrajectory(id string, n int) error {
	err := rs.folder.Root.Replace(rs.folder.Trajectory(id), func(w io.Writer) error {
		return trajectories.WriteTraj(w, rs.folder.Journal(id, n))
	})
	if err != nil {
		return fmt.Errorf("write trajectory: %w", err)
	}
	return nil
}

// summary counts the outcomes of the requested repetitions by class.
func (rs *resultStore) summary(instances []datasets.Instance, repetitions int) runs.Summary {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	summary := runs.Summary{
		Instances: len(instances), Classes: map[trajectories.Class]int{},
		Cost: rs.cost.IfKnown(model.Usage{Unpriced: rs.unpriced}), Unpriced: rs.unpriced,
	}
	if repetitions > 1 {
		summary.Repetitions = repetitions
	}
	for _, in := range instances {
		for rep := 1; rep <= repetitions; rep++ {
			var selected runs.Selection
			if ir := rs.instances[in.ID]; ir != nil {
				selected = ir.selected
			}
			if e, ok := selected[rep]; ok {
				summary.Classes[e.Outcome.Class]++
			} else {
				summary.Unstarted++
			}
		}
	}
	return summary
}

// flush writes results.json and preds.json.
func (rs *resultStore) flush() error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.written = time.Now()
	results := runs.Results{Format: trajectories.Format, Instances: map[string]runs.Result{}}
	preds := map[string]trajectories.Prediction{}
	for id, ir := range rs.instances {
		if p, ok := ir.selected.Prediction(id, 1); ok {
			preds[id] = p
		}
		if len(ir.selected) > 0 {
			results.Instances[id] = rs.result(id, ir)
		}
	}
	if err := rs.folder.writeJSON(resultsFile, results); err != nil {
		return err
	}
	err := rs.folder.Root.Replace(filepath.Join(rs.folder.Dir, predsFile), func(w io.Writer) error {
		return trajectories.EncodePredictions(w, preds)
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", predsFile, err)
	}
	return nil
}

// result returns the result of an instance with its verdicts. The caller holds the
// lock.
func (rs *resultStore) result(id string, ir *instanceResults) runs.Result {
	res := ir.selected.Result(ir.lastAttempt)
	for i := range res.Repetitions {
		if p, ok := ir.selected.Prediction(id, res.Repetitions[i].Repetition); ok {
			rs.folder.setVerdict(&res.Repetitions[i], p)
		}
	}
	if p, ok := ir.selected.Prediction(id, 1); ok {
		rs.folder.setVerdict(&res, p)
	}
	return res
}

// writeJSON replaces a file of the folder atomically.
func (f *Folder) writeJSON(name string, v any) error {
	data, err := text.JSON(v)
	if err == nil {
		err = f.Root.WriteFile(filepath.Join(f.Dir, name), data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// SetVerdictFilter sets the function that reports whether a verdict record is the
// user's own; those take precedence over records of others in the folder. Without
// it no record is the user's own. Call SetVerdictFilter before using the folder.
func (f *Folder) SetVerdictFilter(own func(verdicts.Record) bool) { f.isOwnVerdict = own }

// forgetVerdicts removes the verdicts of an instance from the cache.
func (f *Folder) forgetVerdicts(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.verdicts, id)
}

// setVerdict sets the class and the rewards of the newest verdict on a prediction, if there
// is one.
func (f *Folder) setVerdict(r *runs.Result, p trajectories.Prediction) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, ok := f.verdicts[p.InstanceID]
	if !ok {
		all = verdicts.ReadInstance(f.Dir, p.InstanceID, f.isOwnVerdict)
		if f.verdicts == nil {
			f.verdicts = map[string][]verdicts.Verdict{}
		}
		f.verdicts[p.InstanceID] = all
	}
	var newest runs.Result
	if found := verdicts.Newest(all, p); found != nil {
		class := string(found.Class)
		newest = runs.Result{Verdict: &class, Rewards: found.Rewards, SharedRewards: found.SharedRewards}
	}
	r.CopyVerdict(newest)
}

// UpdateVerdicts writes results.json and preds.json again, with the verdicts of the records. It does
// nothing in a folder without results.json, or if that has instances whose attempts are gone.
func (f *Folder) UpdateVerdicts() error {
	results, err := runs.ReadResults(f.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	listed, listErr := f.List()
	if err = errors.Join(err, listErr); err != nil {
		return err
	}
	for _, l := range listed {
		if len(l.Attempts) > 0 {
			delete(results.Instances, l.ID)
		}
	}
	if len(results.Instances) > 0 {
		return nil
	}
	_, err = f.openResultStore("")
	return err
}
