package verdicts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/minibench/mini/env"
)

// NoPatch is used in place of a patch hash if no patch is applied.
const NoPatch = "none"

// PatchHash returns the SHA-256 of a patch, in hex.
func PatchHash(patch []byte) string {
	sum := sha256.Sum256(patch)
	return hex.EncodeToString(sum[:])
}

// WithImage returns the basis with the identity of the image and the cache key.
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

// imageKey identifies the contents of the image; "" if they are unknown. The
// architecture is included because a digest may be that of a multi-platform
// index.
func (b Basis) imageKey() string {
	name := cmp.Or(b.ImageDigest, b.ImageID)
	if name != "" && b.ImageArch != "" {
		name += " " + b.ImageArch
	}
	return name
}

// CacheKey returns the name of the verdict in the cache: the hash of its
// inputs. It returns "" if the image is unknown; such a verdict is not reused.
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
	if err != nil { // a column with invalid JSON that was never decoded
		data = fmt.Appendf(nil, "%#v", v)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
