package inspect

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// matcher finds a text: in any case, unless it has a letter in upper case.
type matcher struct {
	needle string
	fold   bool
	ascii  bool
	expr   *regexp.Regexp // where it is neither exact nor ASCII
	raw    *matcher       // the needle as it stands in JSON; nil where that is the same
}

// newMatcher is nil for nothing to find.
func newMatcher(needle string) *matcher {
	if needle == "" {
		return nil
	}
	m := &matcher{needle: needle, fold: !strings.ContainsFunc(needle, unicode.IsUpper), ascii: true}
	for i := range len(needle) {
		m.ascii = m.ascii && needle[i] < utf8.RuneSelf
	}
	if m.fold && !m.ascii {
		m.expr = regexp.MustCompile("(?i)" + regexp.QuoteMeta(needle))
	}
	if quoted := inJSON(needle); quoted != needle {
		m.raw = &matcher{needle: quoted, fold: m.fold, ascii: m.ascii}
		if m.expr != nil {
			m.raw.expr = regexp.MustCompile("(?i)" + regexp.QuoteMeta(quoted))
		}
	}
	return m
}

// find is where the first match begins, and its length; -1 where there is none.
func (m *matcher) find(s string) (at, n int) {
	switch {
	case m.expr != nil:
		if loc := m.expr.FindStringIndex(s); loc != nil {
			return loc[0], loc[1] - loc[0]
		}
		return -1, 0
	case !m.fold:
		return strings.Index(s, m.needle), len(m.needle)
	}
	return indexFold([]byte(s), m.needle), len(m.needle)
}

// in says whether bytes have it.
func (m *matcher) in(b []byte) bool {
	switch {
	case m.expr != nil:
		return m.expr.Match(b)
	case !m.fold:
		return bytes.Contains(b, []byte(m.needle))
	}
	return indexFold(b, m.needle) >= 0
}

// indexFold finds lower-case ASCII in any case: pieces are made lower-case, since
// finding bytes as they are is what machines are quick at.
func indexFold(b []byte, needle string) int {
	var buf [16 << 10]byte
	if len(needle) > len(buf)/2 {
		return bytes.Index(bytes.ToLower(b), []byte(needle))
	}
	step := len(buf) - len(needle) + 1 // pieces overlap
	for at := 0; at < len(b); at += step {
		piece := b[at:min(at+len(buf), len(b))]
		low := buf[:len(piece)]
		for i, c := range piece {
			if c-'A' < 26 {
				c += 'a' - 'A'
			}
			low[i] = c
		}
		if i := bytes.Index(low, []byte(needle)); i >= 0 {
			return at + i
		}
	}
	return -1
}
