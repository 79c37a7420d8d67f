package term

import (
	"path"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/sanitize"
)

// paths are the paths that are completed.
type paths struct {
	all   []string
	lower []string // in lower case

	query string // of found
	found []string
}

// maxPathMatches is the maximum number of paths that match.
const maxPathMatches = 50

// set sets the paths. It leaves out those that cannot be typed and shown as they are.
func (p *paths) set(all []string) {
	*p = paths{}
	for _, name := range all {
		if sanitize.IsUnchanged(name) && !strings.ContainsAny(name, "\n\t") {
			p.all, p.lower = append(p.all, name), append(p.lower, strings.ToLower(name))
		}
	}
}

// matching returns the paths that match a query, the best ones first: those that begin with it,
// whose last element begins with it, that contain it, and that contain its letters in order. Case
// does not matter.
func (p *paths) matching(query string) []string {
	if p.found != nil && p.query == query {
		return p.found
	}
	var ranked [4][]string
	text := strings.ToLower(query)
	for i, name := range p.lower {
		if rank := pathRank(name, text); rank >= 0 && len(ranked[rank]) < maxPathMatches {
			ranked[rank] = append(ranked[rank], p.all[i])
		}
	}
	found := slices.Concat(ranked[:]...)
	p.query, p.found = query, append([]string{}, found[:min(len(found), maxPathMatches)]...)
	return p.found
}

// pathRank returns how well a name matches, 0 for best; -1 if it does not.
func pathRank(name, query string) int {
	switch {
	case strings.HasPrefix(name, query):
		return 0
	case strings.HasPrefix(path.Base(name), query):
		return 1
	case strings.Contains(name, query):
		return 2
	}
	for _, r := range query {
		i := strings.IndexRune(name, r)
		if i < 0 {
			return -1
		}
		name = name[i+len(string(r)):]
	}
	return 3
}

// pathWord returns the last word of the input as it was before Tab, if it begins with @, else "".
func (in *input) pathWord() string {
	stem := in.stem()
	word := stem[strings.LastIndexAny(stem, " \n")+1:]
	if !strings.HasPrefix(word, "@") || in.selected < 0 && !in.isAtEnd() {
		return ""
	}
	return word
}
