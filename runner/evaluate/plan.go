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
