package terminal

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Width returns the width of a text in columns, counted per code point, as terminals do
// without grapheme clustering (mode 2027).
func Width(s string) int { return ansi.StringWidthWc(s) }

// Ellipsis marks truncated text.
const Ellipsis = "…"

// PadRight truncates or pads s to exactly w columns; padding is at the right.
func PadRight(s string, w int) string {
	s = Truncate(s, w)
	return s + strings.Repeat(" ", max(0, w-Width(s)))
}

// PadLeft truncates or pads s to exactly w columns; padding is at the left.
func PadLeft(s string, w int) string {
	s = Truncate(s, w)
	return strings.Repeat(" ", max(0, w-Width(s))) + s
}

// Truncate shortens s to at most w columns.
func Truncate(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if Width(s) <= w {
		return s
	}
	cut := ansi.TruncateWc(s, w, Ellipsis)
	// TruncateWc counts some combining characters differently from Width.
	for i := w; Width(cut) > w && i > 0; i-- {
		cut = ansi.TruncateWc(s, i, "")
	}
	return cut
}

// SplitStyled splits a styled text into lines; each line sets and resets its own colours.
func SplitStyled(text string) []string {
	var b strings.Builder
	w := lipgloss.NewWrapWriter(&b)
	_, _ = w.Write([]byte(text)) // never fails
	_ = w.Close()
	return strings.Split(b.String(), "\n")
}

// JoinEnds puts l at the left and r at the right of a line of w columns. If they do not fit,
// it truncates l, or drops r.
func JoinEnds(l, r string, w int) string {
	if gap := w - Width(l) - Width(r); gap >= 1 {
		return l + strings.Repeat(" ", gap) + r
	}
	if Width(r)+8 > w {
		return Truncate(l, w)
	}
	return PadRight(l, w-Width(r)-1) + " " + r
}
