package verdicts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/minibench/mini/env"
)

// NoPatch stands for the hash of a patch where none is applied.
const NoPatch = "none"

// PatchHash is the SHA-256 of a patch, in hex.
func PatchHash(patch []byte) string {
	sum := sha256.Sum256(patch)
	return hex.EncodeToString(sum[:])
}

// InImage is the basis once the image is known.
func (b Basis) InImage(id, digest, arch string) Basis {
	b.ImageID, b.ImageDigest, b.ImageArch = id, digest, arch
	b.Key = b.ComputeKey()
	return b
}

// InSandbox is the basis once there is a sandbox.
func (b Basis) InSandbox(info env.Info) Basis {
	b = b.InImage(info.ImageID, info.ImageDigest, info.ImageArch)
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

// ComputeKey is the name of the verdict in the cache: the hash of what it depends
// on. It is "" where the image is not known, for then nothing is to be reused.
func (b Basis) ComputeKey() string {
	if b.image() == "" {
		return ""
	}
	return Hash(struct {
		Format, Row, Image, Script, Parser, Release, Mini, Patch string
		Timeout                                                  float64
		Network, Profile                                         string
		LogLimit                                                 int
	}{
		Format, b.RowSHA256, b.image(), b.ScriptSHA256, b.Parser, b.ParserRelease, b.MiniVersion, b.PatchSHA256,
		b.Timeout, b.Network, b.Profile, b.LogLimit,
	})
}

// KeyWithPatch is the key of the same evaluation of another patch.
func (b Basis) KeyWithPatch(sha256 string) string {
	b.PatchSHA256 = sha256
	return b.ComputeKey()
}

// Hash is the SHA-256 of a value's JSON, in hex.
func Hash(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // of a row's own JSON that is none: it never was read
		data = fmt.Appendf(nil, "%#v", v)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
