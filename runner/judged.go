package runner

import "github.com/minibench/mini/trajectories"

// Judgement is what the evaluation of a submission found that counts: the newest
// of the user's own, else of all.
type Judgement struct {
	Class string
	// Flags are what it found suspect in the patch or the log, each once.
	Flags []string
}

// Verdicts are what evaluations found of one instance, whichever patch.
type Verdicts struct{ all []verdict }

// Verdicts reads those that the folder of a run holds. own tells the records that
// the user made, by their content.
func (r *Run) Verdicts(id string, own func(record []byte) bool) Verdicts {
	return Verdicts{readVerdicts(r.Dir, id, own)}
}

// On is the verdict on a submission; false where there is none.
func (v Verdicts) On(p trajectories.Prediction) (Judgement, bool) {
	found := newest(v.all, p)
	if found == nil {
		return Judgement{}, false
	}
	j := Judgement{Class: found.Class}
	seen := map[string]bool{}
	for _, f := range found.Flags {
		if !seen[f.Flag] {
			seen[f.Flag] = true
			j.Flags = append(j.Flags, f.Flag)
		}
	}
	return j, true
}

// Submitted is what an attempt has submitted, as preds.json has it; false where
// it is no result.
func Submitted(h trajectories.Header, out trajectories.Outcome) (trajectories.Prediction, bool) {
	if !out.Class.Counts() {
		return trajectories.Prediction{}, false
	}
	return trajectories.Prediction{Model: h.ModelName, InstanceID: h.InstanceID, Patch: asText(out.Submission)}, true
}
