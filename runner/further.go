package runner

import (
	"errors"
	"fmt"

	"github.com/minibench/mini/trajectories"
)

// Submission is what one sample of an instance has submitted.
type Submission struct {
	Sample int
	trajectories.Prediction
}

// Further are the submissions of all samples but the first, which preds.json
// has: by instance, then by sample. They come from the journals; one that cannot
// be read is named in the error, which comes beside the others.
func (r *Run) Further() ([]Submission, error) {
	var all []Submission
	var failed error
	for _, in := range r.Instances {
		for _, res := range in.Samples {
			if res.Sample == 1 || !res.Class.Counts() {
				continue
			}
			p, err := in.prediction(res.Attempt)
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			all = append(all, Submission{Sample: res.Sample, Prediction: p})
		}
	}
	return all, failed
}

// prediction is what an attempt has submitted, by its journal.
func (in Instance) prediction(attempt int) (trajectories.Prediction, error) {
	for _, a := range in.Attempts {
		if a.Number != attempt {
			continue
		}
		out, ok, err := last(a.Journal)
		if err != nil || !ok {
			return trajectories.Prediction{}, errors.Join(fmt.Errorf("attempt %d of %s has no outcome", attempt, in.ID), err)
		}
		return trajectories.Prediction{Model: headerOf(a.Journal).ModelName, InstanceID: in.ID, Patch: asText(out.Submission)}, nil
	}
	return trajectories.Prediction{}, fmt.Errorf("attempt %d of %s is not there", attempt, in.ID)
}
