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

// plan is what can be determined about a task before a sandbox starts.
type plan struct {
	rubric grade.TestSpec
	script script.Script
	basis  verdicts.Basis // without the identity of the image
}

func newPlan(c Config, t Task) (plan, error) {
	rubric, err := grade.NewTestSpec(t.Instance)
	if err != nil {
		return plan{}, err
	}
	s, err := script.For(t.Instance)
	if err != nil {
		return plan{}, err
	}
	return plan{rubric: rubric, script: s, basis: verdicts.Basis{
		Editions:    c.Editions,
		RowSHA256:   rowHash(t.Instance, rubric),
		PatchSHA256: t.patchHash(), PatchBytes: len(t.Patch),
		Image:        t.Instance.ImageName(),
		ScriptSHA256: s.SHA256(), ScriptGenerated: s.Generated,
		Parser: rubric.Parser, ParserRelease: logs.HarnessRelease, EvalType: string(rubric.EvalType),
		MiniVersion: c.MiniVersion,
		Timeout:     c.Timeout.Seconds(), Network: c.Network, Profile: c.Profile,
		LogLimit: logLimit,
		Machine:  verdicts.Machine{CPUs: runtime.NumCPU(), Engine: c.Engine},
	}}, nil
}

// newRunnablePlan is newPlan for a task whose tests will be run: it rejects
// rows whose tests need extra files.
func newRunnablePlan(c Config, t Task) (plan, error) {
	p, err := newPlan(c, t)
	if err == nil && len(p.script.Assets) > 0 {
		err = fmt.Errorf("%s %w: its tests need the file %s, which the row does not contain",
			t.Instance.ID, grade.ErrNotGradable, p.script.Assets[0].Path)
	}
	return p, err
}

// rowHash hashes the columns of a row that determine a verdict. The field names
// are part of the hash.
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
