package child

import (
	"slices"
	"strings"
)

// plain are the variables that programs need to work as usual, and that hold
// nothing of what their user does.
var plain = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR"}

// Plain is what is left of an environment, in NAME=value form, when only PATH,
// HOME, USER, LOGNAME, SHELL, LANG, LC_*, TERM, TZ and TMPDIR are kept.
func Plain(environ []string) []string {
	var kept []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(plain, name) || strings.HasPrefix(name, "LC_") {
			kept = append(kept, kv)
		}
	}
	return kept
}
