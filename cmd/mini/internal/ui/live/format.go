package live

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// sanitizeLine returns the beginning of an untrusted text on one line, without control
// characters.
func sanitizeLine(s string) string { return sanitize.Line(clip(s)) }

// formatDollars formats a cost. Zero or less becomes the empty string, because the price may be
// unknown.
func formatDollars(c float64) string {
	if c <= 0 {
		return ""
	}
	return unit.Money(c)
}

// formatRate formats a rate per hour, with one decimal below 10.
func formatRate(rate float64) string {
	switch {
	case rate <= 0:
		return ""
	case rate < 10:
		return fmt.Sprintf("%.1f/h", rate)
	}
	return fmt.Sprintf("%.0f/h", rate)
}

// outcomeText describes how an attempt ended: its error, or its status, steps, cost and time.
func outcomeText(o *trajectories.Outcome) string {
	switch {
	case o.Error != "" && strings.Contains(clip(o.Error), o.ExitStatus):
		return clip(o.Error)
	case o.Error != "":
		return o.ExitStatus + ": " + clip(o.Error)
	}
	parts := []string{o.ExitStatus, text.Count(o.Steps, "step")}
	if o.Cost > 0 || o.Usage.Unpriced > 0 {
		parts = append(parts, unit.Cost(float64(o.Cost), o.Usage.Unpriced == 0))
	}
	parts = append(parts, unit.Duration(o.ActiveDuration()))
	switch {
	case o.Class.IsResult() && len(o.Submission) == 0:
		parts = append(parts, "empty patch")
	case o.Autosubmitted:
		parts = append(parts, "working diff")
	}
	return strings.Join(parts, "  ")
}

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
