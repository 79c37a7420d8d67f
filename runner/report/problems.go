package report

import (
	"io"
	"strings"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// Problems writes what a user should not miss, in the words of Plain: the
// instances that end without a result, and warnings. Of warnings that differ
// in names and numbers only, one is written.
type Problems struct {
	plain  *Plain
	shapes map[string]bool
}

// maxShapes bounds how many different warnings are written.
const maxShapes = 1000

// NewProblems writes to w. The ids make the columns line up.
func NewProblems(w io.Writer, ids []string) *Problems {
	return &Problems{plain: NewPlain(w, ids), shapes: map[string]bool{}}
}

// Event shows one event, if it is a problem.
func (p *Problems) Event(e runner.Event) {
	switch e.Type {
	case runner.RunStarted:
		p.plain.total = e.Total - e.Skipped
	case runner.SandboxReady:
		p.warn(e, e.Warnings...)
	case runner.Warning:
		p.warn(e, e.Text)
	case runner.AttemptFinished:
		p.finished(e)
	}
}

func (p *Problems) finished(e runner.Event) {
	switch {
	case e.Again, e.Outcome.Class == trajectories.Interrupted: // the user knows
	case e.Outcome.Class.Counts():
		p.plain.done++
		p.warn(e, e.Outcome.Warnings...)
	default:
		p.plain.outcome(e)
		p.warn(e, e.Outcome.Warnings...)
	}
}

func (p *Problems) warn(e runner.Event, texts ...string) {
	for _, text := range texts {
		shape := Shape(text, e.Instance)
		if !p.shapes[shape] && len(p.shapes) < maxShapes {
			p.shapes[shape] = true
			p.plain.warn(e, text)
		}
	}
}

// Shape is a text about an instance without the instance's name and without
// numbers: what texts of the same kind have in common.
func Shape(text, instance string) string {
	if instance != "" {
		text = strings.ReplaceAll(text, instance, "")
	}
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, text)
}
