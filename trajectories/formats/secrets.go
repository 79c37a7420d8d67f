package formats

import (
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// secretName matches the names of settings that contain secrets. Trajectories of other
// agents contain their whole configuration.
var secretName = lazyregexp.New(`(?i)(api_?key|secret|password|passwd|credential|authorization|access_?token|auth_?token|_token$|_key$|^token$)`)

// removedSecret is the replacement for a secret.
const removedSecret = "(left out)"

// removeSecrets replaces the strings of settings whose names match secretName, at any
// depth, except placeholders and names of variables, as in api_key_env. It returns the number of replaced strings.
func removeSecrets(value any) int {
	n := 0
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if s, ok := member.(string); ok && s != "" && secretName.MatchString(name) && !isPlaceholder(s) && !isVariable(name, s) {
				v[name] = removedSecret
				n++
				continue
			}
			n += removeSecrets(member)
		}
	case []any:
		for _, member := range v {
			n += removeSecrets(member)
		}
	}
	return n
}

// isVariable reports whether a setting names a variable and not a secret.
func isVariable(name, value string) bool {
	return strings.HasSuffix(name, "_env") && value == strings.ToUpper(value)
}

// isPlaceholder reports whether a string is not a secret: it is the replacement of a secret
// or has only asterisks, or it starts with $, as a reference to a variable.
func isPlaceholder(s string) bool {
	return s == removedSecret || strings.HasPrefix(s, "$") || strings.Trim(s, "*") == ""
}
