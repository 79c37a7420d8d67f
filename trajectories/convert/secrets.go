package convert

import (
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// keyName is what settings are called that hold keys. Other agents write all
// they were given into their files; a copy of ours must not spread it.
var keyName = lazyregexp.New(`(?i)(api_?key|secret|password|passwd|credential|authorization|access_?token|auth_?token|_token$|_key$|^token$)`)

// leftOut stands where a key was.
const leftOut = "(left out)"

// withoutKeys replaces strings under names of keys, and counts them.
func withoutKeys(value any) int {
	n := 0
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if s, ok := member.(string); ok && s != "" && keyName.MatchString(name) && !isPlaceholder(s) {
				v[name] = leftOut
				n++
				continue
			}
			n += withoutKeys(member)
		}
	case []any:
		for _, member := range v {
			n += withoutKeys(member)
		}
	}
	return n
}

// isPlaceholder: these were left out before, or name where the key is.
func isPlaceholder(s string) bool {
	return s == leftOut || strings.HasPrefix(s, "$") || strings.Trim(s, "*") == ""
}
