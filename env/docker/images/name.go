package images

import (
	"strings"

	"github.com/distribution/reference"

	"github.com/minibench/mini/env"
)

// Name is the one form of an image's name, as engines list it: the tag is
// said, the default registry is not. The error is an *env.Error.
func Name(ref string) (string, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", &env.Error{
			Status: env.ImageNotFound, Op: "find image " + ref, Hint: "this is not the name of an image", Err: err,
		}
	}
	return reference.FamiliarString(named), nil
}

// registryOf is the registry that a name is looked up in.
func registryOf(name string) string {
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		return name
	}
	return reference.Domain(named)
}

// matches says whether a platform is among those that are offered. A variant
// counts only where both sides name one.
func matches(offered []string, wanted string) bool {
	want := strings.SplitN(wanted, "/", 3)
	for _, o := range offered {
		have := strings.SplitN(o, "/", 3)
		if len(have) < 2 || len(want) < 2 || have[0] != want[0] || have[1] != want[1] {
			continue
		}
		if len(have) < 3 || len(want) < 3 || have[2] == want[2] {
			return true
		}
	}
	return false
}
