package live

import (
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// classOrder is the display order of outcome classes.
var classOrder = [...]trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider,
	trajectories.Environment, trajectories.Interrupted, trajectories.Internal,
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

// styledPhase renders a phase in its colour, padded to width w.
func styledPhase(p runner.Phase, pulling bool, w int) string {
	switch {
	case p == "":
		return steps.Faint(padRight("idle", w))
	case p == runner.Starting && pulling:
		return steps.Coloured(ansi.Blue, padRight("pulling", w))
	case p == runner.Rebuilding: // "rebuilding" is wider than the column
		return steps.Coloured(ansi.Blue, padRight("rebuild", w))
	case p == runner.Scrubbing:
		return steps.Coloured(ansi.Blue, padRight("scrub", w))
	}
	s := padRight(string(p), w)
	switch p {
	case runner.Starting, runner.Closing:
		return steps.Coloured(ansi.Blue, s)
	case runner.Thinking:
		return steps.Coloured(ansi.Cyan, s)
	case runner.Running:
		return steps.Coloured(ansi.Green, s)
	case runner.Waiting:
		return steps.Coloured(ansi.Yellow, s)
	}
	return s
}
