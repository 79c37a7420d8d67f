package process

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
)

// markerMatcher decides, while output arrives in chunks, whether its first line equals
// a marker. Leading white space and blank lines are skipped, and trailing white space
// of the line is ignored.
//
// White space and line ends are those of Python's str, because the tools that defined
// the markers use str.strip.
type markerMatcher struct {
	markers []string
	seen    []byte // the output so far, without leading white space
}

type matchState int

const (
	matchUnknown matchState = iota
	matchFailed
	matchFound
)

// newMarkerMatcher returns nil if there are no markers.
func newMarkerMatcher(markers []string) *markerMatcher {
	mm := &markerMatcher{}
	for _, m := range markers {
		if m = strings.TrimFunc(m, isSpace); m != "" {
			mm.markers = append(mm.markers, m)
		}
	}
	if len(mm.markers) == 0 {
		return nil
	}
	return mm
}

func (mm *markerMatcher) add(p []byte) matchState {
	mm.seen = append(mm.seen, p...)
	cut := len(mm.seen) - incompleteSuffix(mm.seen) // the last character may be incomplete
	whole := bytes.TrimLeftFunc(mm.seen[:cut], isSpace)
	mm.seen = append(whole, mm.seen[cut:]...)
	end := bytes.IndexFunc(whole, isLineEnd)
	if end >= 0 {
		whole = whole[:end]
	}
	line, state := string(bytes.TrimRightFunc(whole, isSpace)), matchFailed
	for _, m := range mm.markers {
		switch {
		case line == m && end >= 0:
			return matchFound
		case end < 0 && (line == m || strings.HasPrefix(m, string(whole))):
			state = matchUnknown
		}
	}
	return state
}

// isMarker reports whether the output so far is a marker without the end of its line.
func (mm *markerMatcher) isMarker() bool {
	return slices.Contains(mm.markers, string(bytes.TrimRightFunc(mm.seen, isSpace)))
}

func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func isLineEnd(r rune) bool {
	return strings.ContainsRune("\n\v\f\r\x1c\x1d\x1e\u0085\u2028\u2029", r)
}
