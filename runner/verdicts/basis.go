package verdicts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/minibench/mini/env"
)

// NoPatch replaces the patch hash of an evaluation without a patch.
const NoPatch = "none"

// PatchHash returns the SHA-256 of a patch, in hex.
func PatchHash(patch []byte) string {
	sum := sha256.Sum256(patch)
	return hex.EncodeToString(sum[:])
}

// WithImage returns the basis with the identity of the image and the resulting
// cache key.
func (b Basis) WithImage(id, digest, arch string) Basis {
	b.ImageID, b.ImageDigest, b.ImageArch = id, digest, arch
	b.Key = b.CacheKey()
	return b
}

// WithSandbox returns the basis with the image and machine of a sandbox.
func (b Basis) WithSandbox(info env.Info) Basis {
	b = b.WithImage(info.ImageID, info.ImageDigest, info.ImageArch)
	b.Machine.Arch, b.Machine.Kernel = info.Machine, info.Release
	return b
}

// imageKey returns a string that identifies the contents of the image; "" if they
// are unknown. It includes the architecture, because the digest may be that of a
// multi-platform index.
func (b Basis) imageKey() string {
	identity := cmp.Or(b.ImageDigest, b.ImageID)
	if identity != "" && b.ImageArch != "" {
		identity += " " + b.ImageArch
	}
	return identity
}

// CacheKey returns the hash of the inputs, which is the name of the verdict in the
// cache. It returns "" if the image is unknown, because such a verdict cannot be
// reused.
func (b Basis) CacheKey() string {
	if b.imageKey() == "" {
		return ""
	}
	return HashJSON(struct {
		Format, Row, Image, Script, Parser, Release, Mini, Patch string
		Timeout                                                  float64
		Network, Profile                                         string
		LogLimit                                                 int
	}{
		Format, b.RowSHA256, b.imageKey(), b.ScriptSHA256, b.Parser, b.ParserRelease, b.MiniVersion, b.PatchSHA256,
		b.Timeout, b.Network, b.Profile, b.LogLimit,
	})
}

// CacheKeyWithPatch returns the cache key of the same evaluation with another
// patch.
func (b Basis) CacheKeyWithPatch(sha256 string) string {
	b.PatchSHA256 = sha256
	return b.CacheKey()
}

// HashJSON returns the SHA-256 of a value's JSON encoding, in hex.
func HashJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // a raw column of the row is invalid JSON
		data = fmt.Appendf(nil, "%#v", v)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
