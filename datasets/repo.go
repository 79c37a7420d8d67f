package datasets

import (
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// sweBenchID matches an instance id of SWE-bench, alone or at the end of a
// longer name. The owner group excludes "_", which GitHub does not allow in names
// of owners.
var sweBenchID = lazyregexp.New(`(?:^|_|/)([A-Za-z0-9][A-Za-z0-9-]*)__([A-Za-z0-9._-]+)-\d+$`)

// OtherRepos stands for the repositories of ids that contain none.
const OtherRepos = "others"

// RepoOf returns the repository of an instance id of the form
// owner__name-number, as "owner/name", and "" for other ids.
func RepoOf(id string) string {
	for {
		m := sweBenchID.FindStringSubmatch(id)
		if m == nil {
			return ""
		}
		if !strings.Contains(m[2], "__") {
			return m[1] + "/" + m[2]
		}
		_, id, _ = strings.Cut(id, "__") // the part before "__" is not an owner
	}
}
