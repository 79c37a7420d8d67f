package evaluate

import (
	"fmt"

	"github.com/minibench/mini/datasets"
)

// Model names of the baseline tasks.
const (
	GoldModel = "gold" // as in the official harness
	NoopModel = "noop"
)

// Task is a patch to be evaluated.
type Task struct {
	Instance datasets.Instance
	// Model is the model name of the prediction. Folders are named after it.
	Model string
	// Patch is the unmodified text of the prediction. Null reports that the
	// prediction has null, which a report distinguishes from an empty patch.
	Patch []byte
	Null  bool
	// Repetition numbers the patches of a model for the same instance (pass@k);
	// 0 and 1 are the first. The others have their own run id, because the
	// official layout has one patch for each model and instance.
	Repetition int
	// baseline marks a task that tests this machine, not a model. Its patch is
	// not checked for suspicious changes; noop runs without a patch.
	baseline baseline
}

type baseline string

const (
	gold baseline = "gold"
	noop baseline = "noop"
)

// NewTask returns the task for a model's patch; nil means null.
func NewTask(in datasets.Instance, model string, patch []byte) Task {
	return Task{Instance: in, Model: model, Patch: patch, Null: patch == nil}
}

// GoldTask returns the task for the row's own solution, which should resolve
// the instance.
func GoldTask(in datasets.Instance) Task {
	return Task{Instance: in, Model: GoldModel, Patch: []byte(in.Patch), baseline: gold}
}

// NoopTask returns the task without a patch: the tests run on the unmodified
// repository. It should not resolve the instance.
func NoopTask(in datasets.Instance) Task {
	return Task{Instance: in, Model: NoopModel, baseline: noop}
}

// runID returns the run id of a task.
func (c Config) runID(t Task) string {
	if t.repetition() == 0 {
		return c.RunID
	}
	return fmt.Sprintf("%s-sample-%d", c.RunID, t.Repetition)
}

// repetition returns the repetition of a task, or 0 for the first.
func (t Task) repetition() int {
	if t.Repetition <= 1 {
		return 0
	}
	return t.Repetition
}

// isEmpty reports whether there is nothing to run, as in the official harness.
func (t Task) isEmpty() bool { return len(t.Patch) == 0 && t.baseline != noop }
