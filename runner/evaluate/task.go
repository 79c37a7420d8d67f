package evaluate

import (
	"fmt"

	"github.com/minibench/mini/datasets"
)

// The names that stand for a model in a baseline.
const (
	GoldModel = "gold" // as in the official harness
	NoopModel = "noop"
)

// Task is a patch that is to be judged.
type Task struct {
	Instance datasets.Instance
	// Model is the name in the prediction; it names folders.
	Model string
	// Patch is the text of the prediction, byte for byte. Null says that it was
	// null there, which the report tells from an empty one.
	Patch []byte
	Null  bool
	// Sample is which of several patches of the model for the instance it is; 0
	// and 1 are the one that counts. Others are evaluations of their own, as the
	// official layout has one patch for a model and an instance.
	Sample int
	// baseline says what the task is to show of this machine, and not of a
	// model: no suspicion falls on it, and a noop runs without a patch.
	baseline baseline
}

type baseline string

const (
	gold baseline = "gold"
	noop baseline = "noop"
)

// Prediction is a model's patch; nil stands for null.
func Prediction(in datasets.Instance, model string, patch []byte) Task {
	return Task{Instance: in, Model: model, Patch: patch, Null: patch == nil}
}

// Gold is the row's own solution. On a machine that is fit for the instance it
// resolves it.
func Gold(in datasets.Instance) Task {
	return Task{Instance: in, Model: GoldModel, Patch: []byte(in.Patch), baseline: gold}
}

// Noop is no patch at all: the script runs on the repository as it is. It must
// not resolve the instance.
func Noop(in datasets.Instance) Task {
	return Task{Instance: in, Model: NoopModel, baseline: noop}
}

// runID names the evaluation that a task is part of.
func (c Config) runID(t Task) string {
	if t.further() == 0 {
		return c.RunID
	}
	return fmt.Sprintf("%s-sample-%d", c.RunID, t.Sample)
}

// further is the sample of a task, where that is not the one that counts.
func (t Task) further() int {
	if t.Sample <= 1 {
		return 0
	}
	return t.Sample
}

// empty says that there is nothing to run, as the official harness has it.
func (t Task) empty() bool { return len(t.Patch) == 0 && t.baseline != noop }
