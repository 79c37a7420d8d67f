package replay

import (
	"fmt"
	"regexp"
)

// ignoreRule is the name of the user's rules.
const ignoreRule = "replay.ignore"

// IgnoreRules are the user's patterns for output that may differ. They are applied
// before mini's own rules.
type IgnoreRules []rule

// ParseIgnore parses patterns in the syntax of package regexp. They are applied to
// lines including the newline; $ also matches before it.
func ParseIgnore(patterns []string) (IgnoreRules, error) {
	var all IgnoreRules
	for _, text := range patterns {
		re, err := regexp.Compile("(?m)" + text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("parse pattern %q: %w", text, err)
		case re.MatchString(""):
			return nil, fmt.Errorf("parse pattern %q: it matches the empty string and so every line", text)
		}
		all = append(all, rule{ignoreRule, re, []byte("<" + ignoreRule + ">")})
	}
	return all, nil
}
