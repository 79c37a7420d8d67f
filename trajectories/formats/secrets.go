package formats

import (
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// keyName matches the names of settings that contain secrets. Other agents write
// their whole configuration into trajectories.
var keyName = lazyregexp.New(`(?i)(api_?key|secret|password|passwd|credential|authorization|access_?token|auth_?token|_token$|_key$|^token$)`)

// leftOut replaces a secret.
const leftOut = "(left out)"

// removeKeys replaces strings in fields with names of secrets. It returns their
// number.
func removeKeys(value any) int {
	n := 0
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if s, ok := member.(string); ok && s != "" && keyName.MatchString(name) && !isPlaceholder(s) {
				v[name] = leftOut
				n++
				continue
			}
			n += removeKeys(member)
		}
	case []any:
		for _, member := range v {
			n += removeKeys(member)
		}
	}
	return n
}

// isPlaceholder reports whether a string is not a secret: it was removed before, or
// names a variable.
func isPlaceholder(s string) bool {
	return s == leftOut || strings.HasPrefix(s, "$") || strings.Trim(s, "*") == ""
}
