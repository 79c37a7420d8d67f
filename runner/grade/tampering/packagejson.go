package tampering

import (
	"slices"

	"github.com/minibench/mini/internal/lazyregexp"
)

// scriptKeys matches the keys of package.json and composer.json that configure
// code that runs with the tests.
var scriptKeys = lazyregexp.New(`^(?:scripts|(?:pre|post)?test[\w:.-]*|(?:pre|post)?install|jest|mocha|karma|vitest|ava|jasmine|nyc|` +
	`setupFiles\w*|global(?:Setup|Teardown)|reporters|runner|preset|transform|moduleNameMapper|` +
	`autoload(?:-dev)?)$`)

// harmlessKeys matches the keys of lists whose items do not affect the tests.
var harmlessKeys = lazyregexp.New(`^(?:keywords|workspaces|browserslist|contributors|authors|maintainers|os|cpu|` +
	`engines|repository|\w*[dD]ependencies|require(?:-dev)?)$`)

// affectsScripts reports whether the changes of a package.json or composer.json may
// affect the tests, through the changed key or a key above it. It also reports a
// changed item of a list whose key the patch does not show, and a change without
// lines, such as a rename.
func affectsScripts(s section) bool {
	var oldKeys, newKeys nesting // of the old and the new file, whose brackets differ
	relevant, hasLines := false, false
	s.eachLine(func(sign byte, line []byte) bool {
		switch sign {
		case hunkStart:
			oldKeys, newKeys = nil, nil
		case '-':
			hasLines = true
			relevant = oldKeys.changedLine(line)
		case '+':
			hasLines = true
			relevant = newKeys.changedLine(line)
		case ' ':
			oldKeys.addLine(line)
			newKeys.addLine(line)
		}
		return !relevant
	})
	return relevant || !hasLines
}

// nesting holds the keys of the enclosing objects and lists, outermost first. It lacks
// those whose start the patch does not show.
type nesting []string

// token matches a key, a string or a bracket in JSON.
var token = lazyregexp.New(`"((?:[^"\\]|\\.)*)"(\s*:)?|[\[{]|[\]}]`)

// changedLine reports whether a changed line may affect the tests, and updates the
// nesting.
func (n *nesting) changedLine(line []byte) bool {
	relevant := slices.ContainsFunc(*n, scriptKeys.MatchString)
	hasKey, hasValue := false, false
	for _, m := range token.FindAllSubmatch(line, -1) {
		switch {
		case m[2] != nil:
			hasKey = true
			relevant = relevant || scriptKeys.MatchString(string(m[1]))
		case m[0][0] == '"':
			hasValue = true
		}
	}
	if hasValue && !hasKey {
		relevant = relevant || len(*n) == 0 || !slices.ContainsFunc(*n, harmlessKeys.MatchString)
	}
	n.addLine(line)
	return relevant
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
