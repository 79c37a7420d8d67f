package inspect

import (
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/trajectories"
)

// The sixteen colours of the user's own theme, and few of them. Bubble Tea
// leaves colours out where NO_COLOR is set or the terminal has none.

func faint(s string) string { return ansi.NewStyle().Faint().Styled(s) }
func bold(s string) string  { return ansi.NewStyle().Bold().Styled(s) }

func coloured(c ansi.Color, s string) string { return ansi.NewStyle().ForegroundColor(c).Styled(s) }

func cutTo(s string, w int) string { return screen.Cut(s, w) }
func widthOf(s string) int         { return screen.Width(s) }

// tint is the colour of how an item ended.
func (it *Item) tint() ansi.Color {
	switch it.State {
	case Running:
		return ansi.Cyan
	case Broken:
		return ansi.Red
	case Stopped, Unread:
		return ansi.Yellow
	}
	switch it.Class {
	case trajectories.Submitted:
		return ansi.Green
	case trajectories.Limit:
		return ansi.Yellow
	case trajectories.Interrupted:
		return ansi.Magenta
	}
	return ansi.Red
}

func verdictTint(v string) ansi.Color {
	switch v {
	case "resolved":
		return ansi.Green
	case "infrastructure", "error":
		return ansi.Red
	}
	return ansi.Yellow
}

func reversed(s string) string { return ansi.NewStyle().Reverse(true).Styled(s) }
