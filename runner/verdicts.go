package runner

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

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

// updateRepetitions sets the verdicts of an instance's repetitions.
func (f *Folder) updateRepetitions(id string, repetitions []runs.Result) {
	for i := range repetitions {
		result := &repetitions[i]
		a := runs.Attempt{Number: result.Attempt, Journal: f.Journal(id, result.Attempt)}
		if p, err := a.Prediction(id); err == nil && result.Class.IsResult() {
			f.setVerdict(result, p)
		}
	}
}

// UpdateVerdicts sets the verdicts in results.json from the verdict records and
// changes nothing else. It does nothing if results.json or preds.json is missing.
func (f *Folder) UpdateVerdicts() error {
	results, err := runs.ReadResults(f.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	preds, err := trajectories.ReadPredictions(filepath.Join(f.Dir, predsFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range preds.List {
		if r, ok := results.Instances[p.InstanceID]; ok {
			f.setVerdict(&r, p)
			results.Instances[p.InstanceID] = r
		}
	}
	for id, r := range results.Instances { // r.Repetitions shares its elements with the map's value
		if datasets.CheckID(id) == nil { // the ID is used in file names
			f.updateRepetitions(id, r.Repetitions)
		}
	}
	return f.writeJSON(resultsFile, results)
}
