package evaluate

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
	"github.com/minibench/mini/runner/grade/script"
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

// plan is the part of an evaluation that is known before a sandbox starts.
type plan struct {
	spec   grade.TestSpec
	script script.Script
	basis  verdicts.Basis // without the identity of the image
}

func newPlan(c Config, t Task) (plan, error) {
	spec, err := grade.NewTestSpec(t.Instance)
	if err != nil {
		return plan{}, err
	}
	s, err := script.For(t.Instance)
	if err != nil {
		return plan{}, err
	}
	return plan{spec: spec, script: s, basis: verdicts.Basis{
		Editions:    c.Editions,
		RowSHA256:   rowHash(t.Instance, spec),
		PatchSHA256: t.patchHash(), PatchBytes: len(t.Patch),
		Image:        t.Instance.ImageName(),
		ScriptSHA256: s.SHA256(), ScriptGenerated: s.Generated,
		Parser: spec.Parser, ParserRelease: logs.HarnessRelease, EvalType: string(spec.EvalType),
		MiniVersion: c.MiniVersion,
		Timeout:     c.Timeout.Seconds(), Network: c.Network, Profile: c.Profile,
		LogLimit: logLimit,
		Machine:  verdicts.Machine{CPUs: runtime.NumCPU(), Engine: c.Engine},
	}}, nil
}

// newRunnablePlan returns the plan for a task whose tests will run. It rejects
// rows whose tests need files that the row does not contain.
func newRunnablePlan(c Config, t Task) (plan, error) {
	if t.Instance.TaskDir != "" {
		return plan{}, fmt.Errorf("%s %w: its tests run at the end of each attempt, in the container of the agent", t.Instance.ID, grade.ErrNotGradable)
	}
	p, err := newPlan(c, t)
	if err == nil && len(p.script.Assets) > 0 {
		err = fmt.Errorf("%s %w: its tests need the file %s, which the row does not contain",
			t.Instance.ID, grade.ErrNotGradable, p.script.Assets[0].Path)
	}
	return p, err
}

// rowHash hashes the columns of a row that determine a verdict. The field names
// in this function are part of the hash: renaming one invalidates all verdicts.
func rowHash(in datasets.Instance, r grade.TestSpec) string {
	return verdicts.HashJSON(struct {
		ID, Repo, Version, BaseCommit, TestPatch, Image, EvalScript, Parser, EvalType string
		FailToPass, PassToPass                                                        []string
		Assets                                                                        json.RawMessage
	}{
		in.ID, in.Repo, in.Version, in.BaseCommit, in.TestPatch, in.ImageName(), in.EvalScript, r.Parser, string(r.EvalType),
		in.FailToPass, in.PassToPass, in.Row["image_assets"],
	})
}

func (t Task) patchHash() string {
	if t.baseline == noop {
		return verdicts.NoPatch
	}
	return verdicts.PatchHash(t.Patch)
}
