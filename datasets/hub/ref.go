package hub

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Alias is a short name of a dataset.
type Alias struct {
	Name  string
	Repo  string
	Split string // the one that is taken unless another is named
	About string
	Rows  int // about; the sets that grow have more by now
}

// Aliases are the datasets with names of their own, the usual ones first.
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

// Ref names a dataset on the hub. Make it with ParseRef, which checks it.
type Ref struct {
	Repo     string // org/name
	Revision string // branch, tag, refs/convert/parquet or commit; "" is main
	Split    string // "" is the repository's only one, or test
}

// String is how a user would write it, without the split.
func (r Ref) String() string {
	if r.Revision == "" || r.Revision == mainBranch {
		return r.Repo
	}
	return r.Repo + "@" + r.Revision
}

const mainBranch = "main"

func (r Ref) orMain() Ref {
	if r.Revision == "" {
		r.Revision = mainBranch
	}
	return r
}

// The hub's rules for names, and Git's for revisions as far as the hub's URLs
// can carry them. Names of repositories become names of folders here, org and
// name joined by "--", which the hub allows in neither.
var (
	repoName     = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$`)
	revisionName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}$`)
	splitName    = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)
)

// ParseRef reads an alias or org/name, either with @revision. split may be
// empty; an alias then brings its own. The error is an *Error of ErrRef.
func ParseRef(s, split string) (Ref, error) {
	name, revision, at := strings.Cut(s, "@")
	ref := Ref{Repo: name, Revision: revision, Split: split}
	for _, a := range Aliases() {
		if a.Name == name {
			ref.Repo = a.Repo
			if split == "" {
				ref.Split = a.Split
			}
		}
	}
	bad := func(format string, args ...any) (Ref, error) {
		return Ref{}, &Error{
			kind: ErrRef, Text: fmt.Sprintf(format, args...),
			Hint: "a dataset is an alias (" + aliasNames() + "), org/name on the hub, either with @revision, or a file",
		}
	}
	switch {
	case !repoName.MatchString(ref.Repo), strings.Contains(ref.Repo, ".."), strings.Contains(ref.Repo, "--"):
		return bad("%.100q is not the name of a dataset", name)
	case at && (!revisionName.MatchString(revision) || !cleanPath(revision)):
		return bad("%.100q is not a revision", revision)
	case split != "" && (!splitName.MatchString(split) || strings.Contains(split, "..")):
		return bad("%.100q is not the name of a split", split)
	}
	return ref, nil
}

// cleanPath says whether no server or proxy would read p as another path.
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
