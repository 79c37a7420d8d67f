package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width is that of a text in columns, counted code point by code point, as
// terminals do that were not asked to join them.
func Width(s string) int { return ansi.StringWidthWc(s) }

// Ellipsis marks what was cut off.
const Ellipsis = "…"

// Fit is s in exactly w columns, cut at its end or filled up.
func Fit(s string, w int) string {
	s = Cut(s, w)
	return s + strings.Repeat(" ", max(0, w-Width(s)))
}

// Right is Fit for numbers.
func Right(s string, w int) string {
	s = Cut(s, w)
	return strings.Repeat(" ", max(0, w-Width(s))) + s
}

// Cut is s in at most w columns.
func Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if Width(s) <= w {
		return s
	}
	cut := ansi.TruncateWc(s, w, Ellipsis)
	// It counts some signs that go onto others by their cluster, and Width does not.
	for i := w; Width(cut) > w && i > 0; i-- {
		cut = ansi.TruncateWc(s, i, "")
	}
	return cut
}

// Beside puts l at the left and r at the right of a line; where both have no
// room, l is cut.
func Beside(l, r string, w int) string {
	if gap := w - Width(l) - Width(r); gap >= 1 {
		return l + strings.Repeat(" ", gap) + r
	}
	if Width(r)+8 > w {
		return Cut(l, w)
	}
	return Fit(l, w-Width(r)-1) + " " + r
}
