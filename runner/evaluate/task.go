package evaluate

import (
	"fmt"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/verdicts"
)

// Model names of the baseline tasks.
const (
	GoldModel = verdicts.GoldModel
	NoopModel = verdicts.NoopModel
)

// Task is a patch to be evaluated.
type Task struct {
	Instance datasets.Instance
	// Model is the model name of the prediction. Folders are named after it.
	Model string
	// Patch is the unmodified patch of the prediction. Null reports whether the
	// prediction has null instead; a report distinguishes it from an empty patch.
	Patch []byte
	Null  bool
	// Repetition numbers the patches of a model for the same instance (pass@k);
	// 0 and 1 are the first. Each later repetition has its own run id, because
	// the official layout has one patch for each model and instance.
	Repetition int
	// baseline is set in a task that tests this machine, not a model. The
	// evaluator does not check the patch of a baseline for suspicious changes.
	baseline baseline
}

type baseline string

const (
	gold baseline = "gold" // the row's own solution
	noop baseline = "noop" // no patch
)

// NewTask returns the task for a model's patch. A nil patch means null.
func NewTask(in datasets.Instance, model string, patch []byte) Task {
	return Task{Instance: in, Model: model, Patch: patch, Null: patch == nil}
}

// GoldTask returns the task for the row's own solution, which should resolve
// the instance.
func GoldTask(in datasets.Instance) Task {
	return Task{Instance: in, Model: GoldModel, Patch: []byte(in.Patch), baseline: gold}
}

// NoopTask returns a task without a patch, which runs the tests on the unmodified
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

// isEmpty reports whether the patch is empty; false for the noop baseline. As
// in the official harness, the tests of an empty patch do not run.
func (t Task) isEmpty() bool { return len(t.Patch) == 0 && t.baseline != noop }
