package runner

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// OwnVerdicts sets what tells the records of verdicts that the user made: the
// folder may come with others. It is called before the folder is worked in;
// without it no record is the user's.
func (f *Folder) OwnVerdicts(own func(verdicts.Record) bool) { f.own = own }

// judged forgets what is known of an instance's verdicts: there is a new one.
func (f *Folder) judged(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.verdicts, id)
}

// verdict is the class of the verdict on a prediction that counts, as of newest;
// nil where there is none.
func (f *Folder) verdict(p trajectories.Prediction) *string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, ok := f.verdicts[p.InstanceID]
	if !ok {
		all = verdicts.OfInstance(f.dir, p.InstanceID, f.own)
		if f.verdicts == nil {
			f.verdicts = map[string][]verdicts.Verdict{}
		}
		f.verdicts[p.InstanceID] = all
	}
	found := verdicts.Newest(all, p)
	if found == nil {
		return nil
	}
	class := string(found.Class)
	return &class
}

// enterFurther gives the samples of an instance their verdicts.
func (f *Folder) enterFurther(id string, samples []Result) {
	for i := range samples {
		s := &samples[i]
		in := Instance{ID: id, Attempts: []Attempt{{Number: s.Attempt, Journal: f.Journal(id, s.Attempt)}}}
		if p, err := in.prediction(s.Attempt); err == nil && s.Class.Counts() {
			s.Verdict = f.verdict(p)
		}
	}
}

// EnterVerdicts writes results.json anew with the verdicts that evaluations
// have left in the folder. Nothing else in it changes, and a folder without
// results stays without.
func (f *Folder) EnterVerdicts() error {
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
			r.Verdict = f.verdict(p)
			results.Instances[p.InstanceID] = r
		}
	}
	for id, r := range results.Instances { // the slices are the map's
		if datasets.CheckID(id) == nil { // it names files
			f.enterFurther(id, r.Samples)
		}
	}
	return f.writeJSON(resultsFile, results)
}
