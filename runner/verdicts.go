package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/trajectories"
)

// verdictsDir is where evaluations leave their records, as
// verdicts/RUN_ID/MODEL/INSTANCE.json (package runner/evaluate has the form).
const verdictsDir = datasets.VerdictsDir

// maxVerdict bounds one record, in bytes.
const maxVerdict = 16 << 20

// verdict is what of a record says which patch it is on, and how that ended.
type verdict struct {
	Instance string `json:"instance_id"`
	Model    string `json:"model_name_or_path"`
	Class    string `json:"class"`
	Basis    struct {
		PatchSHA256 string `json:"patch_sha256"`
		PatchBytes  int    `json:"patch_bytes"`
	} `json:"basis"`
	Flags []struct {
		Flag string `json:"flag"`
	} `json:"flags"`
	own     bool // the user made it: a forged one never stands before it
	written time.Time
}

// on says whether the verdict is on this prediction, and not on an earlier one
// of the same instance.
func (v verdict) on(p trajectories.Prediction) bool {
	if v.Instance != p.InstanceID || v.Model != p.Model || v.Class == "" || v.Basis.PatchBytes != len(p.Patch) {
		return false
	}
	sum := sha256.Sum256([]byte(p.Patch))
	return p.Patch == "" || v.Basis.PatchSHA256 == hex.EncodeToString(sum[:])
}

// OwnVerdicts sets what tells the records of verdicts that the user made, by
// their content: the folder may come with others. It is called before the folder
// is worked in; without it no record is the user's.
func (f *Folder) OwnVerdicts(own func(record []byte) bool) { f.own = own }

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
		all = readVerdicts(f.dir, p.InstanceID, f.own)
		if f.verdicts == nil {
			f.verdicts = map[string][]verdict{}
		}
		f.verdicts[p.InstanceID] = all
	}
	found := newest(all, p)
	if found == nil {
		return nil
	}
	class := found.Class
	return &class
}

// newest is the newest verdict on a prediction of those that the user made, else
// of all; nil where there is none.
func newest(all []verdict, p trajectories.Prediction) *verdict {
	var found *verdict
	for i, v := range all {
		switch {
		case !v.on(p):
		case found == nil, v.own && !found.own, v.own == found.own && v.written.After(found.written):
			found = &all[i]
		}
	}
	return found
}

// readVerdicts reads what evaluations have found of an instance, of all run
// ids and models. What cannot be read is no verdict: evaluating finds it
// missing too. The id may come from a file of a stranger's. own tells the records
// that the user made; nil where there are none.
func readVerdicts(dir, id string, own func(record []byte) bool) []verdict {
	var found []verdict
	if datasets.CheckID(id) != nil { // it names files
		return nil
	}
	for _, run := range folders(filepath.Join(dir, verdictsDir)) {
		for _, model := range folders(run) {
			path := filepath.Join(model, id+".json")
			info, err := os.Lstat(path)
			var record json.RawMessage
			if err != nil || readJSON(path, maxVerdict, &record) != nil {
				continue
			}
			v := verdict{own: own != nil && own(record), written: info.ModTime()}
			if json.Unmarshal(record, &v) != nil {
				continue
			}
			found = append(found, v)
		}
	}
	return found
}

// folders are the paths of the folders in one. Links are not followed.
func folders(dir string) []string {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var paths []string
	for _, e := range entries {
		if e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// enterFurther gives the samples of an instance their verdicts.
func (f *Folder) enterFurther(id string, samples []Result) {
	for i := range samples {
		s := &samples[i]
		in := Instance{ID: id, Attempts: []Attempt{{Number: s.Attempt, Journal: f.journal(id, s.Attempt)}}}
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
