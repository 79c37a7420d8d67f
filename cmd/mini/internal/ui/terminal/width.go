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

// PadRight truncates s to w columns, or pads it at the right.
func PadRight(s string, w int) string {
	s = Truncate(s, w)
	return s + strings.Repeat(" ", max(0, w-Width(s)))
}

// PadLeft truncates s to w columns, or pads it at the left.
func PadLeft(s string, w int) string {
	s = Truncate(s, w)
	return strings.Repeat(" ", max(0, w-Width(s))) + s
}

// Truncate shortens s to at most w columns and marks the end with Ellipsis.
func Truncate(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if Width(s) <= w {
		return s
	}
	truncated := ansi.TruncateWc(s, w, Ellipsis)
	// TruncateWc counts some combining characters differently from Width.
	for i := w; Width(truncated) > w && i > 0; i-- {
		truncated = ansi.TruncateWc(s, i, "")
	}
	return truncated
}

// SplitStyled splits a styled text into lines; each line sets and resets its own colours.
func SplitStyled(text string) []string {
	var lines strings.Builder
	w := lipgloss.NewWrapWriter(&lines)
	_, _ = w.Write([]byte(text)) // never fails
	_ = w.Close()
	return strings.Split(lines.String(), "\n")
}

// JoinEnds puts left and right at the ends of a line of w columns. If they do not fit, it
// truncates left, or drops right if left would have fewer than seven columns.
func JoinEnds(left, right string, w int) string {
	if gap := w - Width(left) - Width(right); gap >= 1 {
		return left + strings.Repeat(" ", gap) + right
	}
	if Width(right)+8 > w {
		return Truncate(left, w)
	}
	return PadRight(left, w-Width(right)-1) + " " + right
}
