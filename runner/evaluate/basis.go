package evaluate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
	"github.com/minibench/mini/runner/grade/script"
)

// plan is what is known of a task before there is a sandbox.
type plan struct {
	rubric grade.Rubric
	script script.Script
	basis  Basis // without the image's identity
}

func newPlan(c Config, t Task) (plan, error) {
	rubric, err := grade.RubricOf(t.Instance)
	if err != nil {
		return plan{}, err
	}
	s, err := script.For(t.Instance)
	if err != nil {
		return plan{}, err
	}
	if len(s.Assets) > 0 && c.Asset == nil {
		return plan{}, fmt.Errorf("%s %w: its tests need the file %s, which the row does not bring", t.Instance.ID, grade.ErrNotGradable, s.Assets[0].Path)
	}
	return plan{rubric: rubric, script: s, basis: Basis{
		Editions:    c.Editions,
		RowSHA256:   rowHash(t.Instance, rubric),
		PatchSHA256: t.patchHash(), PatchBytes: len(t.Patch),
		Image:        t.Instance.ImageName(),
		ScriptSHA256: s.SHA256(), ScriptGenerated: s.Generated,
		Parser: rubric.Parser, ParserRelease: logs.Release, EvalType: string(rubric.EvalType),
		MiniVersion: c.MiniVersion,
		Timeout:     c.Timeout.Seconds(), Network: c.Network, Profile: c.Profile,
		LogLimit: c.LogLimit,
		Machine:  Machine{CPUs: runtime.NumCPU(), Engine: c.Engine},
	}}, nil
}

// rowHash is over the columns that decide a verdict.
func rowHash(in datasets.Instance, r grade.Rubric) string {
	return hash(struct {
		ID, Repo, Version, BaseCommit, TestPatch, Image, EvalScript, Parser, EvalType string
		FailToPass, PassToPass                                                        []string
		Assets                                                                        json.RawMessage
	}{
		in.ID, in.Repo, in.Version, in.BaseCommit, in.TestPatch, in.ImageName(), in.EvalScript, r.Parser, string(r.EvalType),
		in.FailToPass, in.PassToPass, in.Row["image_assets"],
	})
}

// noPatch stands for the hash of a patch where none is applied.
const noPatch = "none"

func (t Task) patchHash() string {
	if t.baseline == noop {
		return noPatch
	}
	return patchHash(t.Patch)
}

func patchHash(patch []byte) string {
	sum := sha256.Sum256(patch)
	return hex.EncodeToString(sum[:])
}

// inImage is the basis once the image is known.
func (b Basis) inImage(i Image) Basis {
	b.ImageID, b.ImageDigest, b.ImageArch = i.ID, i.Digest, i.Arch
	b.Key = b.key()
	return b
}

// in is the basis once there is a sandbox.
func (b Basis) in(info env.Info) Basis {
	b = b.inImage(Image{info.ImageID, info.ImageDigest, info.ImageArch})
	b.Machine.Arch, b.Machine.Kernel = info.Machine, info.Release
	return b
}

// image names the contents of the image; "" is not known. The digest may be
// that of a list, of an image for each kind of processor.
func (b Basis) image() string {
	name := cmp.Or(b.ImageDigest, b.ImageID)
	if name != "" && b.ImageArch != "" {
		name += " " + b.ImageArch
	}
	return name
}

// key is the name of the verdict in the cache: the hash of what it depends on.
// It is "" where the image is not known, for then nothing is to be reused.
func (b Basis) key() string {
	if b.image() == "" {
		return ""
	}
	return hash(struct {
		Format, Row, Image, Script, Parser, Release, Mini, Patch string
		Timeout                                                  float64
		Network, Profile                                         string
		LogLimit                                                 int
	}{
		Format, b.RowSHA256, b.image(), b.ScriptSHA256, b.Parser, b.ParserRelease, b.MiniVersion, b.PatchSHA256,
		b.Timeout, b.Network, b.Profile, b.LogLimit,
	})
}

// withPatch is the key of the same evaluation of another patch.
func (b Basis) withPatch(sha256 string) string {
	b.PatchSHA256 = sha256
	return b.key()
}

// hash is the SHA-256 of a value's JSON, in hex.
func hash(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // of a row's own JSON that is none: it never was read
		data = fmt.Appendf(nil, "%#v", v)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
