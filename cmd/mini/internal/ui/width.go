package ui

import (
	"io"
	"math"
	"os"

	"golang.org/x/term"
)

// Line widths, in columns.
const (
	DefaultWidth = 100 // for output that is not a terminal
	minWidth     = 40
	maxWidth     = 120
)

// Width returns the line width for output on w, in columns: the width of the
// terminal, from 40 to 120, or DefaultWidth if w is not a terminal.
func Width(w io.Writer) int {
	f, _ := w.(*os.File)
	if width := TerminalWidth(f); width > 0 {
		return min(width, maxWidth)
	}
	return DefaultWidth
}

// TableWidth is Width for tables of names to copy: without a limit if w is not a terminal.
func TableWidth(w io.Writer) int {
	if f, _ := w.(*os.File); TerminalWidth(f) == 0 {
		return math.MaxInt
	}
	return Width(w)
}

// TerminalWidth returns the width of a terminal in columns, at least 40. It
// returns 0 if f is not a terminal.
func TerminalWidth(f *os.File) int {
	if f == nil {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 0
	}
	return max(width, minWidth)
}
