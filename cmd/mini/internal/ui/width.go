package ui

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Widths of what is shown, in characters.
const (
	DefaultWidth = 100 // where there is no terminal
	leastWidth   = 40
	mostWidth    = 120
)

// Width returns the line width for output on w, in columns.
func Width(w io.Writer) int {
	f, _ := w.(*os.File)
	if width := TerminalWidth(f); width > 0 {
		return min(width, mostWidth)
	}
	return DefaultWidth
}

// TerminalWidth returns the width of a terminal in columns; 0 if f is not a
// terminal.
func TerminalWidth(f *os.File) int {
	if f == nil {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 0
	}
	return max(width, leastWidth)
}
