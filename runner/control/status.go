package control

import (
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/runner"
)

// Status is how a run stands at a moment.
type Status struct {
	Run     string  `json:"run"` // its folder
	PID     int     `json:"pid"`
	Elapsed float64 `json:"elapsed"` // seconds
	// Standing is nil when the agent is done, and only verdicts are awaited.
	Standing  *runner.Standing `json:"queue"`
	Running   []Row            `json:"running"`
	Providers []Provider       `json:"providers"`
	Disk      Disk             `json:"disk"`
}

// Row is an instance that a worker has.
type Row struct {
	Who     string       `json:"id"`
	Attempt int          `json:"attempt"`
	Phase   runner.Phase `json:"phase"`
	Step    int          `json:"step"`
	Cost    float64      `json:"cost"`    // US dollars
	Elapsed float64      `json:"elapsed"` // seconds, of the attempt
	Command string       `json:"command,omitempty"`

	began time.Time
}

// Provider is what an endpoint lets through.
type Provider struct {
	Endpoint string `json:"endpoint"` // its host
	runner.ProviderState
}

// Disk is the room that a run has, in bytes; what is not known is nil.
type Disk struct {
	Run    *int64 `json:"run_free"`    // where its folder is
	Engine *int64 `json:"engine_free"` // where the engine keeps images and containers
	// Budget bounds the images that mini pulled, which take Images; nil where
	// nothing bounds them, or none was measured yet.
	Budget *int64 `json:"image_budget,omitempty"`
	Images *int64 `json:"images,omitempty"`
}

// Watch knows what the workers of a run are in the middle of, by its events. The
// zero value is ready, and safe for concurrent use.
type Watch struct {
	mu    sync.Mutex
	began time.Time
	rows  []*Row // in the order in which they began
}

// Event takes in one event; it is quick.
func (w *Watch) Event(e runner.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Type {
	case runner.RunStarted:
		w.began, w.rows = e.Time, nil
	case runner.AttemptStarted:
		w.forget(e.Who())
		w.rows = append(w.rows, &Row{Who: e.Who(), Attempt: e.Attempt, Phase: runner.Starting, began: e.Time})
	case runner.Step:
		w.each(e, func(r *Row) { r.Step, r.Cost = e.Step, e.Cost })
	case runner.Doing:
		if e.Phase == runner.Left {
			w.forget(e.Who())
			return
		}
		w.each(e, func(r *Row) { r.doing(e) })
	}
}

func (r *Row) doing(e runner.Event) {
	r.Phase, r.Command = e.Phase, e.Command
	if !starts(e.Phase) && e.Phase != runner.Waiting {
		r.Step, r.Cost = e.Step, e.Cost
	}
}

// each finds the rows that an event is about. Sandboxes know instances only, and
// what they say is about the samples that are being started.
func (w *Watch) each(e runner.Event, f func(*Row)) {
	for _, r := range w.rows {
		of := e.Sample == 0 && strings.HasPrefix(r.Who, e.Instance+"#") && (starts(r.Phase) || r.Phase == runner.Waiting)
		if r.Who == e.Who() || of {
			f(r)
		}
	}
}

func (w *Watch) forget(who string) {
	for i, r := range w.rows {
		if r.Who == who {
			w.rows = append(w.rows[:i], w.rows[i+1:]...)
			return
		}
	}
}

// Rows are the instances at work now, and how long the run has gone on.
func (w *Watch) Rows(now time.Time) ([]Row, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Row, 0, len(w.rows))
	for _, r := range w.rows {
		row := *r
		row.Elapsed = now.Sub(r.began).Seconds()
		all = append(all, row)
	}
	if w.began.IsZero() {
		return all, 0
	}
	return all, now.Sub(w.began)
}

// starts reports whether a phase comes before the sandbox is ready.
func starts(p runner.Phase) bool { return p == runner.Starting || p == runner.Scrubbing }
