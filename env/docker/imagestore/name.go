package imagestore

import (
	"strings"

	"github.com/distribution/reference"

	"github.com/minibench/mini/env"
)

// NormalizeName normalizes an image name to the form that engines list: with a tag or
// digest, without the default registry. The error is an *env.Error.
func NormalizeName(ref string) (string, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", &env.Error{
			Status: env.ImageNotFound, Op: "find image " + ref, Hint: "check the name: it is not a valid image name", Err: err,
		}
	}
	return reference.FamiliarString(named), nil
}

// registryHost returns the registry of a name, or the name itself if it is invalid.
func registryHost(name string) string {
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		return name
	}
	return reference.Domain(named)
}

// matches reports whether the wanted platform is among the available ones. It
// compares variants only if both platforms have one.
func matches(available []string, wanted string) bool {
	want := strings.SplitN(wanted, "/", 3)
	for _, p := range available {
		have := strings.SplitN(p, "/", 3)
		if len(have) < 2 || len(want) < 2 || have[0] != want[0] || have[1] != want[1] {
			continue
		}
		if len(have) < 3 || len(want) < 3 || have[2] == want[2] {
			return true
		}
	}
	return false
}
