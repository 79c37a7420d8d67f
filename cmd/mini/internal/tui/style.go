package tui

import (
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// classes in the order in which they are shown.
var classes = [...]trajectories.Class{
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

// phaseStyled is a phase in its colour.
func phaseStyled(p runner.Phase, pulling bool, w int) string {
	switch {
	case p == "":
		return steps.Faint(fit("idle", w))
	case p == runner.Starting && pulling:
		return steps.Coloured(ansi.Blue, fit("pulling", w))
	case p == runner.Rebuilding: // the whole word is wider than the column
		return steps.Coloured(ansi.Blue, fit("rebuild", w))
	case p == runner.Scrubbing:
		return steps.Coloured(ansi.Blue, fit("scrub", w))
	}
	s := fit(string(p), w)
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
