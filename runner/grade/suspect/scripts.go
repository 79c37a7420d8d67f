package suspect

import (
	"slices"

	"github.com/minibench/mini/internal/lazyregexp"
)

// scriptKeys matches the keys of package.json and composer.json below which, or
// at which, stands what runs with the tests.
var scriptKeys = lazyregexp.New(`^(?:scripts|(?:pre|post)?test[\w:.-]*|(?:pre|post)?install|jest|mocha|karma|vitest|ava|jasmine|nyc|` +
	`setupFiles\w*|global(?:Setup|Teardown)|reporters|runner|preset|transform|moduleNameMapper|` +
	`autoload(?:-dev)?)$`)

// plainKeys matches those of lists in which a name does no harm.
var plainKeys = lazyregexp.New(`^(?:keywords|workspaces|browserslist|contributors|authors|maintainers|os|cpu|engines|repository|\w*[dD]ependencies|require(?:-dev)?)$`)

// aboutScripts tells whether the changes of a package.json or a composer.json
// reach the tests: by their key, or by one that they stand below. An item of a
// list whose key the patch does not show may do so.
func aboutScripts(s section) bool {
	var before, now nesting // the file has two forms, and each its own brackets
	about, any := false, false
	s.changed(func(sign byte, line []byte) bool {
		switch sign {
		case hunkStart:
			before, now = nil, nil
		case '-':
			any = true
			about = before.touched(line)
		case '+':
			any = true
			about = now.touched(line)
		case ' ':
			before.read(line)
			now.read(line)
		}
		return !about
	})
	return about || !any
}

// nesting are the keys of the objects and lists that are open, as far as the
// patch shows where they open.
type nesting []string

// token matches what of JSON matters here: a key, a string, a bracket.
var token = lazyregexp.New(`"((?:[^"\\]|\\.)*)"(\s*:)?|[\[{]|[\]}]`)

// touched reads a line that a patch changes, and tells whether it is of
// interest.
func (n *nesting) touched(line []byte) bool {
	found := slices.ContainsFunc(*n, scriptKeys.MatchString)
	keyed, item := false, false
	for _, m := range token.FindAllSubmatch(line, -1) {
		switch {
		case m[2] != nil:
			keyed = true
			found = found || scriptKeys.MatchString(string(m[1]))
		case m[0][0] == '"':
			item = true
		}
	}
	if item && !keyed {
		found = found || len(*n) == 0 || !slices.ContainsFunc(*n, plainKeys.MatchString)
	}
	n.read(line)
	return found
}

// read follows the brackets of a line.
func (n *nesting) read(line []byte) {
	key := ""
	for _, m := range token.FindAllSubmatch(line, -1) {
		switch c := m[0][0]; {
		case m[2] != nil:
			key = string(m[1])
		case c == '{' || c == '[':
			*n = append(*n, key)
			key = ""
		case c == '"':
			key = ""
		case len(*n) > 0:
			*n = (*n)[:len(*n)-1]
		}
	}
}
