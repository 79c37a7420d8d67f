package runner

import "github.com/minibench/mini/trajectories"

// Submitted is what an attempt has submitted, as preds.json has it; false where
// it is no result.
func Submitted(h trajectories.Header, out trajectories.Outcome) (trajectories.Prediction, bool) {
	if !out.Class.Counts() {
		return trajectories.Prediction{}, false
	}
	return trajectories.Prediction{Model: h.ModelName, InstanceID: h.InstanceID, Patch: asText(out.Submission)}, true
}
