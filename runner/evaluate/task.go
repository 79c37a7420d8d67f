package evaluate

import (
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

// empty says that there is nothing to run, as the official harness has it.
func (t Task) empty() bool { return len(t.Patch) == 0 && t.baseline != noop }
