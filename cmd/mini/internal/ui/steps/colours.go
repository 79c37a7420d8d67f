package steps

import (
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/difflines"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// The functions use the ANSI colours of the user's theme. Most text is uncoloured, so that
// colours stand out. The frontends remove colours if NO_COLOR is set or the terminal has none.

// Faint renders sanitized text faint.
func Faint(s string) string { return styled(ansi.NewStyle().Faint(), s) }

// Bold renders sanitized text bold.
func Bold(s string) string { return styled(ansi.NewStyle().Bold(), s) }

// Coloured renders sanitized text in a colour.
func Coloured(c ansi.Color, s string) string { return styled(ansi.NewStyle().ForegroundColor(c), s) }

// BoldColoured renders sanitized text bold and in a colour.
func BoldColoured(c ansi.Color, s string) string {
	return styled(ansi.NewStyle().Bold().ForegroundColor(c), s)
}

// Colour returns a function that renders sanitized text in a colour.
func Colour(c ansi.Color) func(string) string {
	return func(s string) string { return Coloured(c, s) }
}

// Unstyled returns s.
func Unstyled(s string) string { return s }

func styled(style ansi.Style, s string) string {
	if s == "" {
		return ""
	}
	return style.Styled(s)
}

// ClassColour returns the colour of an outcome class. The empty class stands for a warning.
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

// VerdictColour returns the colour of a verdict: red only if the evaluation itself failed.
func VerdictColour(c verdicts.Class) ansi.Color {
	switch c {
	case verdicts.Resolved:
		return ansi.Green
	case verdicts.Infrastructure, verdicts.Error:
		return ansi.Red
	}
	return ansi.Yellow
}

// DiffStyle returns the style of a line of a diff.
func DiffStyle(c difflines.Class) func(string) string {
	switch c {
	case difflines.File:
		return Bold
	case difflines.Hunk:
		return Colour(ansi.Cyan)
	case difflines.Add:
		return Colour(ansi.Green)
	case difflines.Del:
		return Colour(ansi.Red)
	}
	return Unstyled
}
