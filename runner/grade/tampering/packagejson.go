package tampering

import (
	"slices"

	"github.com/minibench/mini/internal/lazyregexp"
)

// scriptKeys matches the keys of package.json and composer.json that configure
// what runs with the tests.
var scriptKeys = lazyregexp.New(`^(?:scripts|(?:pre|post)?test[\w:.-]*|(?:pre|post)?install|jest|mocha|karma|vitest|ava|jasmine|nyc|` +
	`setupFiles\w*|global(?:Setup|Teardown)|reporters|runner|preset|transform|moduleNameMapper|` +
	`autoload(?:-dev)?)$`)

// harmlessKeys matches the keys of lists whose items do not affect the tests.
var harmlessKeys = lazyregexp.New(`^(?:keywords|workspaces|browserslist|contributors|authors|maintainers|os|cpu|` +
	`engines|repository|\w*[dD]ependencies|require(?:-dev)?)$`)

// affectsScripts reports whether the changes of a package.json or composer.json
// may affect the tests: through the changed key or a key above it. An item of a
// list counts if the patch does not show the list's key.
func affectsScripts(s section) bool {
	var oldKeys, newKeys nesting // the old and the new file have different brackets
	about, any := false, false
	s.eachLine(func(sign byte, line []byte) bool {
		switch sign {
		case hunkStart:
			oldKeys, newKeys = nil, nil
		case '-':
			any = true
			about = oldKeys.changedLine(line)
		case '+':
			any = true
			about = newKeys.changedLine(line)
		case ' ':
			oldKeys.addLine(line)
			newKeys.addLine(line)
		}
		return !about
	})
	return about || !any
}

// nesting holds the keys of the open objects and lists, as far as the patch
// shows them.
type nesting []string

// token matches a key, a string or a bracket in JSON.
var token = lazyregexp.New(`"((?:[^"\\]|\\.)*)"(\s*:)?|[\[{]|[\]}]`)

// changedLine parses a changed line and reports whether it may affect the
// tests.
func (n *nesting) changedLine(line []byte) bool {
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
		found = found || len(*n) == 0 || !slices.ContainsFunc(*n, harmlessKeys.MatchString)
	}
	n.addLine(line)
	return found
}

// addLine updates the nesting with the brackets of a line.
func (n *nesting) addLine(line []byte) {
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
