package report

import (
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Problems writes what a user should not miss, in the words of Plain: the
// instances that end without a result, or cannot be judged, and warnings.
type Problems struct{ plain *Plain }

// NewProblems writes by a Plain that nobody else uses.
func NewProblems(p *Plain) *Problems { return &Problems{plain: p} }

// Event shows one event, if it is a problem.
func (p *Problems) Event(e runner.Event) {
	switch e.Type {
	case runner.RunStarted:
		p.plain.total = e.Total - e.Skipped
	case runner.SandboxReady:
		p.plain.warn(e, e.Warnings...)
	case runner.Warning:
		p.plain.warn(e, e.Text)
	case runner.AttemptFinished:
		p.finished(e)
	case runner.Verdict:
		if e.Verdict == string(verdicts.Infrastructure) && !e.Again {
			p.plain.verdict(e)
		}
	}
}

func (p *Problems) finished(e runner.Event) {
	switch {
	case e.Again, e.Outcome.Class == trajectories.Interrupted: // the user knows
	case e.Outcome.Class.Counts():
		p.plain.done++
		p.plain.warn(e, e.Outcome.Warnings...)
	default:
		p.plain.outcome(e)
		p.plain.warn(e, e.Outcome.Warnings...)
	}
}
