package runner

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Results is the contents of results.json.
type Results struct {
	Format    string            `json:"format"`
	Instances map[string]Result `json:"instances"`
}

// Result is the result of one instance in results.json. It describes the selected
// attempt of the first repetition.
type Result struct {
	// Class is empty if the first repetition has no ended attempt.
	Class      trajectories.Class `json:"class"`
	ExitStatus string             `json:"exit_status"`
	Verdict    *string            `json:"verdict"` // class of the verdict; null before evaluation
	// Rewards are those of the verdict on a Harbor task; see verdicts.Record.
	Rewards       map[string]float64 `json:"rewards,omitempty"`
	Attempt       int                `json:"attempt"`            // number of the selected attempt
	Attempts      int                `json:"attempts,omitempty"` // highest attempt number; 0 in Repetitions
	Steps         int                `json:"steps"`
	Usage         model.Usage        `json:"usage"`
	Cost          *model.Cost        `json:"cost"` // null if no cost is known
	Start         time.Time          `json:"start"`
	End           time.Time          `json:"end"`
	Seconds       float64            `json:"seconds"`
	Times         trajectories.Times `json:"times,omitzero"`
	Autosubmitted bool               `json:"autosubmitted,omitempty"`
	PatchBytes    int                `json:"patch_bytes"`
	PartialPatch  trajectories.Bytes `json:"partial_patch,omitempty"`
	Error         string             `json:"error,omitempty"`
	Hint          string             `json:"hint,omitempty"`
	NetworkProof  string             `json:"network_proof,omitempty"`
	Warnings      []string           `json:"warnings,omitempty"`
	// Repetitions are the results of all repetitions if there are several.
	// Repetition is set only in them.
	Repetition  int      `json:"sample,omitempty"`
	Repetitions []Result `json:"samples,omitempty"`
}

// flush writes results.json and preds.json.
func (rs *resultStore) flush() error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.written = time.Now()
	results := Results{Format: trajectories.Format, Instances: map[string]Result{}}
	preds := map[string]trajectories.Prediction{}
	for id, ir := range rs.instances {
		if p, ok := rs.prediction(id, 1); ok {
			preds[id] = p
		}
		if res, ok := rs.result(id, ir); ok {
			results.Instances[id] = res
		}
	}
	if err := rs.folder.writeJSON(resultsFile, results); err != nil {
		return err
	}
	err := rs.folder.root.Replace(filepath.Join(rs.folder.dir, predsFile), func(w io.Writer) error {
		return trajectories.EncodePredictions(w, preds)
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", predsFile, err)
	}
	return nil
}

// result returns the result of an instance with its verdicts, or false if no attempt
// has ended. The caller holds the lock.
func (rs *resultStore) result(id string, ir *instanceResults) (Result, bool) {
	if len(ir.repetitions) == 0 {
		return Result{}, false
	}
	res := ir.result()
	for i := range res.Repetitions {
		if p, ok := rs.prediction(id, res.Repetitions[i].Repetition); ok {
			res.Repetitions[i].Verdict, res.Repetitions[i].Rewards = rs.folder.verdict(p)
		}
	}
	if p, ok := rs.prediction(id, 1); ok {
		res.Verdict, res.Rewards = rs.folder.verdict(p)
	}
	return res, true
}

// prediction returns the submission of a repetition, or false if the repetition has
// no result. The caller holds the lock.
func (rs *resultStore) prediction(id string, rep int) (trajectories.Prediction, bool) {
	ir := rs.instances[id]
	if ir == nil || ir.repetitions[rep] == nil || !ir.repetitions[rep].outcome.Class.IsResult() {
		return trajectories.Prediction{}, false
	}
	selected := ir.repetitions[rep]
	return trajectories.Prediction{
		Model: cmp.Or(selected.model, rs.modelName), InstanceID: id, Patch: asText(selected.outcome.Submission),
	}, true
}

// result returns the result of the first repetition. If there are several, it
// includes the results of all repetitions.
func (ir *instanceResults) result() Result {
	res := Result{Attempts: ir.lastAttempt}
	if first := ir.repetitions[1]; first != nil {
		if res = first.result(ir.lastAttempt); len(ir.repetitions) == 1 {
			return res
		}
	}
	res.Repetitions = ir.results()
	return res
}

// results returns the results of all repetitions with an ended attempt, in order.
func (ir *instanceResults) results() []Result {
	var all []Result
	for _, rep := range slices.Sorted(maps.Keys(ir.repetitions)) {
		result := ir.repetitions[rep].result(0)
		result.Repetition = rep
		all = append(all, result)
	}
	return all
}

func (rep *repetition) result(attempts int) Result {
	o := rep.outcome
	return Result{
		Class: o.Class, ExitStatus: o.ExitStatus, Attempt: rep.attempt, Attempts: attempts,
		Steps: o.Steps, Usage: o.Usage, Cost: o.Cost.IfKnown(o.Usage),
		Start: o.Start, End: o.End, Seconds: o.ActiveDuration().Seconds(), Times: o.Times,
		Autosubmitted: o.Autosubmitted, PatchBytes: len(o.Submission), PartialPatch: o.PartialPatch,
		Error: o.Error, Hint: o.Hint, NetworkProof: o.NetworkProof, Warnings: o.Warnings,
	}
}

// KnownCost returns the cost, or 0 if it is unknown.
func (r Result) KnownCost() model.Cost {
	if r.Cost == nil {
		return 0
	}
	return *r.Cost
}

// asText converts a submission for a prediction file. It replaces invalid UTF-8,
// which is rare: the agent encodes files that are not UTF-8 as a binary patch. If
// that failed, the outcome has a warning and the journal has the original bytes.
func asText(patch []byte) string {
	if utf8.Valid(patch) {
		return string(patch)
	}
	return string([]rune(string(patch)))
}

// writeJSON replaces a file of the folder atomically.
func (f *Folder) writeJSON(name string, v any) error {
	data, err := text.JSON(v)
	if err == nil {
		err = f.root.WriteFile(filepath.Join(f.dir, name), data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
