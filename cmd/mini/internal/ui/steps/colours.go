package steps

import (
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// The sixteen colours of the user's own theme, and few of them: most of the screen is
// plain, so that what is coloured means something. Bubble Tea leaves colours out where
// NO_COLOR is set or the terminal has none.

// Faint is a sanitized text that matters less.
func Faint(s string) string { return ansi.NewStyle().Faint().Styled(s) }

// Bold is a sanitized text that matters more.
func Bold(s string) string { return ansi.NewStyle().Bold().Styled(s) }

// Coloured is a sanitized text in a colour.
func Coloured(c ansi.Color, s string) string { return ansi.NewStyle().ForegroundColor(c).Styled(s) }

// ClassColour is the colour of how an attempt ended; an empty class is a warning.
func ClassColour(c trajectories.Class) ansi.Color {
	switch c {
	case trajectories.Submitted:
		return ansi.Green
	case trajectories.Limit, "":
		return ansi.Yellow
	case trajectories.Interrupted:
		return ansi.Magenta
	}
	return ansi.Red
}

// VerdictColour is the colour of a verdict. One that speaks against a patch is nothing
// to be alarmed about; one that says nothing about it is.
func VerdictColour(c verdicts.Class) ansi.Color {
	switch c {
	case verdicts.Resolved:
		return ansi.Green
	case verdicts.Infrastructure, verdicts.Error:
		return ansi.Red
	}
	return ansi.Yellow
}
