package steps

import (
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// The functions use the ANSI colours of the user's theme. Most text is uncoloured, so that
// colours stand out. Bubble Tea removes colours if NO_COLOR is set or the terminal has none.

// Faint renders sanitized text faint.
func Faint(s string) string { return ansi.NewStyle().Faint().Styled(s) }

// Bold renders sanitized text bold.
func Bold(s string) string { return ansi.NewStyle().Bold().Styled(s) }

// Coloured renders sanitized text in a colour.
func Coloured(c ansi.Color, s string) string { return ansi.NewStyle().ForegroundColor(c).Styled(s) }

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
