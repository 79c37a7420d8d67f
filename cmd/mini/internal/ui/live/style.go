package live

import (
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
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

// styledPhase renders a phase in its colour, padded to w columns. pulling means that the image of
// the sandbox is being pulled.
func styledPhase(p runner.Phase, pulling bool, w int) string {
	switch {
	case p == "":
		return steps.Faint(terminal.PadRight("idle", w))
	case p == runner.PhaseStarting && pulling:
		return steps.Coloured(ansi.Blue, terminal.PadRight("pulling", w))
	case p == runner.PhaseRebuilding: // "rebuilding" is wider than the column
		return steps.Coloured(ansi.Blue, terminal.PadRight("rebuild", w))
	case p == runner.PhaseScrubbing:
		return steps.Coloured(ansi.Blue, terminal.PadRight("scrub", w))
	}
	s := terminal.PadRight(string(p), w)
	switch p {
	case runner.PhaseStarting, runner.PhaseClosing:
		return steps.Coloured(ansi.Blue, s)
	case runner.PhaseThinking:
		return steps.Coloured(ansi.Cyan, s)
	case runner.PhaseRunning:
		return steps.Coloured(ansi.Green, s)
	case runner.PhaseWaiting, runner.PhaseQueued:
		return steps.Coloured(ansi.Yellow, s)
	}
	return s
}
