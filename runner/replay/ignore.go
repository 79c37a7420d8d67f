package replay

import (
	"fmt"
	"regexp"
)

// ignoreRule is the name of the rules that are the user's own.
const ignoreRule = "replay.ignore"

// Ignore are patterns of the user's own: what they find in a line of output is
// noise. They are tried before mini's own rules.
type Ignore []rule

// ParseIgnore reads patterns in the syntax of package regexp. They are tried on
// lines with their ends, before which $ matches too.
func ParseIgnore(patterns []string) (Ignore, error) {
	var all Ignore
	for _, text := range patterns {
		re, err := regexp.Compile("(?m)" + text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("parse pattern %q: %w", text, err)
		case re.MatchString(""):
			return nil, fmt.Errorf("parse pattern %q: it matches an empty text, and so every line", text)
		}
		all = append(all, rule{ignoreRule, re, []byte("<" + ignoreRule + ">")})
	}
	return all, nil
}
