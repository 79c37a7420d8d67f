package hub

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Alias is a short name of a dataset.
type Alias struct {
	Name        string
	Repo        string
	Split       string // the default split
	Description string
	Rows        int // approximate; some datasets grow
}

// Aliases returns the datasets with short names, the most common ones first.
func Aliases() []Alias {
	return []Alias{
		{"verified", "SWE-bench/SWE-bench_Verified", "test", "checked by people; the usual benchmark", 500},
		{"lite", "SWE-bench/SWE-bench_Lite", "test", "smaller, self-contained issues", 300},
		{"full", "SWE-bench/SWE-bench", "test", "all of SWE-bench: 12 Python repositories", 2294},
		{"multilingual", "SWE-bench/SWE-bench_Multilingual", "test", "nine languages beside Python", 300},
		{"multimodal", "SWE-bench/SWE-bench_Multimodal", "dev", "issues with pictures, in JavaScript", 102},
		{"smith", "SWE-bench/SWE-smith", "train", "synthetic bugs, for training", 59_000},
		{"rebench", "nebius/SWE-rebench", "test", "collected automatically", 21_000},
		{"live", "SWE-bench-Live/SWE-bench-Live", "test", "issues since 2024, updated monthly", 1000},
	}
}

// Ref refers to a dataset on the hub. ParseRef validates it.
type Ref struct {
	Repo     string // org/name
	Revision string // branch, tag, refs/convert/parquet or commit; "" means main
	Split    string // "" means test, or else the only split
}

// String returns the reference as a user would type it, without the split.
func (r Ref) String() string {
	if r.Revision == "" || r.Revision == mainBranch {
		return r.Repo
	}
	return r.Repo + "@" + r.Revision
}

const mainBranch = "main"

// withRevision returns r with main as its revision if it has none.
func (r Ref) withRevision() Ref {
	if r.Revision == "" {
		r.Revision = mainBranch
	}
	return r
}

// Patterns of valid names. They follow the hub's rules for repositories, and Git's rules for
// revisions as far as the hub's URLs support them. The directory of a repository is org and
// name joined by "--", which neither of the two may contain.
var (
	repoName     = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$`)
	revisionName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}$`)
	splitName    = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)
)

// ParseRef parses an alias or org/name, optionally followed by @revision. If split is empty,
// the default split of an alias applies. The error is an *Error.
func ParseRef(s, split string) (Ref, error) {
	name, revision, hasRevision := strings.Cut(s, "@")
	ref := Ref{Repo: name, Revision: revision, Split: split}
	for _, a := range Aliases() {
		if a.Name == name {
			ref.Repo = a.Repo
			if split == "" {
				ref.Split = a.Split
			}
		}
	}
	invalid := func(format string, args ...any) (Ref, error) {
		return Ref{}, &Error{
			Text: fmt.Sprintf(format, args...),
			Hint: "use an alias (" + aliasNames() + "), org/name on the hub, either with @revision, or a file",
		}
	}
	switch {
	case !repoName.MatchString(ref.Repo), strings.Contains(ref.Repo, ".."), strings.Contains(ref.Repo, "--"):
		return invalid("%.100q is not the name of a dataset", name)
	case hasRevision && (!revisionName.MatchString(revision) || !cleanPath(revision)):
		return invalid("%.100q is not a revision", revision)
	case split != "" && (!splitName.MatchString(split) || strings.Contains(split, "..")):
		return invalid("%.100q is not the name of a split", split)
	}
	return ref, nil
}

// cleanPath reports whether p is in normal form, so that servers and proxies do not change
// it to another path.
func cleanPath(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || strings.Contains(part, "..") {
			return false
		}
	}
	return true
}

func aliasNames() string {
	var names []string
	for _, a := range Aliases() {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}
