package runner

import (
	"errors"
	"fmt"

	"github.com/minibench/mini/trajectories"
)

// Submission is the submission of one repetition of an instance.
type Submission struct {
	Repetition int
	trajectories.Prediction
}

// ExtraSubmissions returns the submissions of all repetitions except the first,
// which is in preds.json. They are ordered by instance and repetition. The error
// names the attempts whose outcome cannot be read; the other submissions are
// returned too.
func (r *Run) ExtraSubmissions() ([]Submission, error) {
	var all []Submission
	var errs error
	for _, in := range r.Instances {
		for _, res := range in.Repetitions {
			if res.Repetition == 1 || !res.Class.IsResult() {
				continue
			}
			p, err := in.prediction(res.Attempt)
			if err != nil {
				errs = errors.Join(errs, err)
				continue
			}
			all = append(all, Submission{Repetition: res.Repetition, Prediction: p})
		}
	}
	return all, errs
}

// prediction returns the submission of an attempt, from its journal.
func (in Instance) prediction(attempt int) (trajectories.Prediction, error) {
	for _, a := range in.Attempts {
		if a.Number != attempt {
			continue
		}
		out, ok, err := lastOutcome(a.Journal)
		if err != nil || !ok {
			return trajectories.Prediction{}, errors.Join(fmt.Errorf("attempt %d of %s has no outcome", attempt, in.ID), err)
		}
		return trajectories.Prediction{Model: headerOf(a.Journal).ModelName, InstanceID: in.ID, Patch: asText(out.Submission)}, nil
	}
	return trajectories.Prediction{}, fmt.Errorf("%s has no attempt %d", in.ID, attempt)
}

// PredictionOf returns the prediction of an attempt for preds.json, or false if its
// outcome does not count as a result.
func PredictionOf(h trajectories.Header, out trajectories.Outcome) (trajectories.Prediction, bool) {
	if !out.Class.IsResult() {
		return trajectories.Prediction{}, false
	}
	return trajectories.Prediction{Model: h.ModelName, InstanceID: h.InstanceID, Patch: asText(out.Submission)}, true
}
