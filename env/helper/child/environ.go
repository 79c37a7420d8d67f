package child

import (
	"slices"
	"strings"
)

// plainVars are the variables that programs commonly need and that do not reveal what
// the user does.
var plainVars = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR"}

// FilterEnv returns the variables of environ, as NAME=value, that are PATH, HOME, USER,
// LOGNAME, SHELL, LANG, LC_*, TERM, TZ or TMPDIR.
func FilterEnv(environ []string) []string {
	var kept []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(plainVars, name) || strings.HasPrefix(name, "LC_") {
			kept = append(kept, kv)
		}
	}
	return kept
}
