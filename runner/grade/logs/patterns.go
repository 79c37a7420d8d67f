package logs

import (
	"iter"

	"github.com/minibench/mini/internal/lazyregexp"
)

// groups are what the first group of a pattern holds, for every match. The
// pattern has to begin with a letter, so that it means the same in the rest of a
// text as in the whole.
func groups(pattern *lazyregexp.Regexp, text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			m := pattern.FindStringSubmatchIndex(text)
			if m == nil || !yield(text[m[2]:m[3]]) {
				return
			}
			text = text[m[1]:]
		}
	}
}
