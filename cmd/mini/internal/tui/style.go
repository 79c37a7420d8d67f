package tui

import (
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// The sixteen colours of the user's own theme, and few of them: most of the
// screen is plain, so that what is coloured means something. Bubble Tea leaves
// colours out where NO_COLOR is set or the terminal has none.
const (
	red     = ansi.Red
	green   = ansi.Green
	yellow  = ansi.Yellow
	blue    = ansi.Blue
	magenta = ansi.Magenta
	cyan    = ansi.Cyan
)

func faint(s string) string { return ansi.NewStyle().Faint().Styled(s) }
func bold(s string) string  { return ansi.NewStyle().Bold().Styled(s) }

func coloured(c ansi.Color, s string) string {
	return ansi.NewStyle().ForegroundColor(c).Styled(s)
}

// classes in the order in which they are shown.
var classes = [...]trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider,
	trajectories.Environment, trajectories.Interrupted, trajectories.Internal,
}

func classColour(c trajectories.Class) ansi.Color {
	switch c {
	case trajectories.Submitted:
		return green
	case trajectories.Limit, "": // a warning
		return yellow
	case trajectories.Interrupted:
		return magenta
	}
	return red
}

// A verdict that speaks against a patch is nothing to be alarmed about; one that
// says nothing about it is.
func verdictColour(c verdicts.Class) ansi.Color {
	switch c {
	case verdicts.Resolved:
		return green
	case verdicts.Infrastructure, verdicts.Error:
		return red
	}
	return yellow
}

func verdictMark(c verdicts.Class) string {
	switch c {
	case verdicts.Resolved:
		return "✓"
	case verdicts.Infrastructure, verdicts.Error:
		return "✗"
	}
	return "–"
}

// phaseStyled is a phase in its colour.
func phaseStyled(p runner.Phase, pulling bool, w int) string {
	switch {
	case p == "":
		return faint(fit("idle", w))
	case p == runner.Starting && pulling:
		return coloured(blue, fit("pulling", w))
	case p == runner.Rebuilding: // the whole word is wider than the column
		return coloured(blue, fit("rebuild", w))
	case p == runner.Scrubbing:
		return coloured(blue, fit("scrub", w))
	}
	s := fit(string(p), w)
	switch p {
	case runner.Starting, runner.Closing:
		return coloured(blue, s)
	case runner.Thinking:
		return coloured(cyan, s)
	case runner.Running:
		return coloured(green, s)
	case runner.Waiting:
		return coloured(yellow, s)
	}
	return s
}
