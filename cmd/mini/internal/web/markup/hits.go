package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// finder finds the hits of a query by the rule of query.TextMatcher: case matters if the query
// has an upper-case letter.
type finder struct {
	query string
	exact bool
}

// hit is a range of bytes.
type hit struct{ start, end int }

func newFinder(query string) finder {
	query = strings.ToValidUTF8(query, "\ufffd")
	return finder{query: query, exact: strings.ContainsFunc(query, unicode.IsUpper)}
}

// all returns up to limit hits in s, without overlaps.
func (f finder) all(s string, limit int) (hits []hit) {
	if f.query == "" {
		return nil
	}
	text, offset := s, func(i int) int { return i }
	if !f.exact {
		text, offset = lower(s)
	}
	for at := 0; len(hits) < limit; {
		i := strings.Index(text[at:], f.query)
		if i < 0 {
			break
		}
		at += i + len(f.query)
		hits = append(hits, hit{offset(at - len(f.query)), offset(at)})
	}
	return hits
}

// lower returns s in lower case and a function that returns the offset in s of an offset in the
// result, for offsets that do not decrease.
func lower(s string) (string, func(int) int) {
	text := strings.ToLower(s)
	in, out := 0, 0
	return text, func(to int) int {
		for out < to && in < len(s) {
			r, size := utf8.DecodeRuneInString(s[in:])
			in, out = in+size, out+utf8.RuneLen(unicode.ToLower(r))
		}
		return in
	}
}
