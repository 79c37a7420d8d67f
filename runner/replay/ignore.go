package replay

import (
	"fmt"
	"regexp"
)

// ignoreRule is the name of all rules from the user's patterns.
const ignoreRule = "replay.ignore"

// IgnoreRules match output that may differ, by the user's patterns. Compare applies
// them before mini's own rules.
type IgnoreRules []rule

// ParseIgnore compiles patterns in the syntax of package regexp. They are applied to
// single lines that include the newline; $ also matches before the newline.
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
