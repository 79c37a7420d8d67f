package runs

import (
	"maps"
	"slices"

	"github.com/minibench/mini/trajectories"
)

// Selection has the attempt that counts for each repetition of an instance; retries
// after a failure belong to the same repetition. Files with room for one result per
// instance have the first repetition, which was chosen before any verdict was known.
type Selection map[int]Ended

// Ended is an attempt that has ended.
type Ended struct {
	Attempt int
	Model   string
	Outcome trajectories.Outcome
}

// Add adds an ended attempt and reports whether it becomes the selected attempt of its
// repetition. The selected attempt is the newest one whose class counts as a result
// or, if there is none, the newest.
func (s Selection) Add(rep int, e Ended) bool {
	if !e.Outcome.Class.IsResult() && s.HasResult(rep) {
		return false
	}
	s[rep] = e
	return true
}

// HasResult reports whether a repetition has a result.
func (s Selection) HasResult(rep int) bool { return s[rep].Outcome.Class.IsResult() }

// Prediction returns the submission of a repetition, or false if the repetition has
// no result.
func (s Selection) Prediction(id string, rep int) (trajectories.Prediction, bool) {
	return PredictionOf(id, s[rep].Model, s[rep].Outcome)
}

// PredictionOf returns the prediction of an attempt for preds.json, or false if its
// outcome does not count as a result.
func PredictionOf(id, modelName string, out trajectories.Outcome) (trajectories.Prediction, bool) {
	if !out.Class.IsResult() {
		return trajectories.Prediction{}, false
	}
	return trajectories.Prediction{Model: modelName, InstanceID: id, Patch: asText(out.Submission)}, true
}

// Result returns the result of the first repetition. If there are several, it
// includes the results of all repetitions. lastAttempt is the highest number.
func (s Selection) Result(lastAttempt int) Result {
	res := Result{}
	first, ok := s[1]
	if ok {
		res = first.result()
	}
	res.Attempts = lastAttempt
	if ok && len(s) == 1 {
		return res
	}
	for _, rep := range slices.Sorted(maps.Keys(s)) {
		result := s[rep].result()
		result.Repetition = rep
		res.Repetitions = append(res.Repetitions, result)
	}
	return res
}
