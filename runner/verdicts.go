package runner

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/minibench/mini/datasets"
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

// verdict returns the class of the newest verdict on a prediction, and its rewards; nil if
// there is none.
func (f *Folder) verdict(p trajectories.Prediction) (*string, map[string]float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, ok := f.verdicts[p.InstanceID]
	if !ok {
		all = verdicts.ReadInstance(f.dir, p.InstanceID, f.isOwnVerdict)
		if f.verdicts == nil {
			f.verdicts = map[string][]verdicts.Verdict{}
		}
		f.verdicts[p.InstanceID] = all
	}
	found := verdicts.Newest(all, p)
	if found == nil {
		return nil, nil
	}
	class := string(found.Class)
	return &class, found.Rewards
}

// updateRepetitions sets the verdicts of an instance's repetitions.
func (f *Folder) updateRepetitions(id string, repetitions []Result) {
	for i := range repetitions {
		result := &repetitions[i]
		in := Instance{ID: id, Attempts: []Attempt{{Number: result.Attempt, Journal: f.Journal(id, result.Attempt)}}}
		if p, err := in.prediction(result.Attempt); err == nil && result.Class.IsResult() {
			result.Verdict, result.Rewards = f.verdict(p)
		}
	}
}

// UpdateVerdicts sets the verdicts in results.json from the verdict records and
// changes nothing else. It does nothing if results.json or preds.json is missing.
func (f *Folder) UpdateVerdicts() error {
	var results Results
	err := readJSON(filepath.Join(f.dir, resultsFile), maxResults, &results)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	preds, err := trajectories.ReadPredictions(filepath.Join(f.dir, predsFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range preds.List {
		if r, ok := results.Instances[p.InstanceID]; ok {
			r.Verdict, r.Rewards = f.verdict(p)
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
