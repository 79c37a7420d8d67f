package evaluate

import (
	"encoding/json"
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
	// baseline is GoldModel or NoopModel in a task that tests this machine, not a model.
	// The evaluator does not check the patch of a baseline for suspicious changes.
	baseline string
}

// NewTask returns the task for a model's patch. A nil patch means null.
func NewTask(in datasets.Instance, model string, patch []byte) Task {
	return Task{Instance: in, Model: model, Patch: patch, Null: patch == nil}
}

// GoldTask returns the task for the row's own solution, which should resolve
// the instance.
func GoldTask(in datasets.Instance) Task {
	return Task{Instance: in, Model: GoldModel, Patch: []byte(in.Patch), baseline: GoldModel}
}

// NoopTask returns a task without a patch, which runs the tests on the unmodified
// repository. It should not resolve the instance.
func NoopTask(in datasets.Instance) Task {
	return Task{Instance: in, Model: NoopModel, baseline: NoopModel}
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
func (t Task) isEmpty() bool { return len(t.Patch) == 0 && t.baseline != NoopModel }

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
	patchHash := verdicts.PatchHash(t.Patch)
	if t.baseline == NoopModel {
		patchHash = verdicts.NoPatch
	}
	return plan{spec: spec, script: s, basis: verdicts.Basis{
		Editions:    c.Editions,
		RowSHA256:   rowHash(t.Instance, spec),
		PatchSHA256: patchHash, PatchBytes: len(t.Patch),
		Image:        t.Instance.ImageName(),
		ScriptSHA256: s.SHA256(), ScriptGenerated: s.Generated,
		Parser: spec.Parser, ParserRelease: logs.HarnessRelease, EvalType: string(spec.EvalType),
		MiniVersion: c.MiniVersion,
		Timeout:     c.Timeout.Seconds(), Network: c.Network, Profile: c.Profile,
		LogLimit: logLimit,
		Machine:  verdicts.Machine{CPUs: runtime.NumCPU(), Engine: c.Engine},
	}}, nil
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
