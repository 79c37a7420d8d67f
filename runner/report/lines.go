package report

import (
	"io"

	"github.com/minibench/mini/runner"
)

// Lines writes each event as the line that events.jsonl has of it, for a
// program that follows a run.
type Lines struct{ w io.Writer }

// NewLines writes to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Event writes one event. A writer that fails is not the run's concern.
func (l *Lines) Event(e runner.Event) {
	if e.Transient() {
		return
	}
	if line, err := e.Line(); err == nil {
		_, _ = l.w.Write(line)
	}
}
