package control

import (
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/runner"
)

// Status is the status of a run.
type Status struct {
	Run     string  `json:"run"` // folder
	PID     int     `json:"pid"`
	Elapsed float64 `json:"elapsed"` // seconds
	// Queue is nil when all attempts have ended and only verdicts are missing.
	Queue     *runner.QueueStatus `json:"queue"`
	Running   []RunningTask       `json:"running"`
	Providers []Provider          `json:"providers"`
	Disk      Disk                `json:"disk"`
}

// RunningTask is a task that has a worker.
type RunningTask struct {
	TaskID  string       `json:"id"`
	Attempt int          `json:"attempt"`
	Phase   runner.Phase `json:"phase"`
	Step    int          `json:"step"`
	Cost    float64      `json:"cost"`    // US dollars
	Elapsed float64      `json:"elapsed"` // duration of the attempt, in seconds
	Command string       `json:"command,omitempty"`

	started time.Time
}

// Provider is the rate limit state of an endpoint.
type Provider struct { // host
	Endpoint string `json:"endpoint"` // its host
	runner.ProviderState
}

// Disk is the disk space of a run, in bytes; nil if unknown.
type Disk struct {
	RunFree    *int64 `json:"run_free"`    // free, of the run's folder
	EngineFree *int64 `json:"engine_free"` // free, of the container engine's images and containers
	// ImageBudget bounds the images that mini pulled, whose size is Images; nil
	// if it is not set or not yet measured.
	ImageBudget *int64 `json:"image_budget,omitempty"`
	Images      *int64 `json:"images,omitempty"`
}

// Tracker tracks the running tasks of a run from its events. The zero value is ready
// to use. Its methods are safe for concurrent use.
type Tracker struct {
	mu      sync.Mutex
	started time.Time
	running []*RunningTask // in the order in which they began
}

// Update processes an event.
func (w *Tracker) Update(e runner.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Type {
	case runner.RunStarted:
		w.started, w.running = e.Time, nil
	case runner.AttemptStarted:
		w.remove(e.TaskID())
		w.running = append(w.running, &RunningTask{TaskID: e.TaskID(), Attempt: e.Attempt, Phase: runner.Starting, started: e.Time})
	case runner.Step:
		w.forEach(e, func(r *RunningTask) { r.Step, r.Cost = e.Step, e.Cost })
	case runner.PhaseChanged:
		if e.Phase == runner.Released {
			w.remove(e.TaskID())
			return
		}
		w.forEach(e, func(r *RunningTask) { r.setPhase(e) })
	}
}

func (r *RunningTask) setPhase(e runner.Event) {
	r.Phase, r.Command = e.Phase, e.Command
	if !isStarting(e.Phase) && e.Phase != runner.Waiting {
		r.Step, r.Cost = e.Step, e.Cost
	}
}

// forEach applies f to the tasks of an event. Events of sandboxes have no
// repetition; they apply to all repetitions that are starting.
func (w *Tracker) forEach(e runner.Event, f func(*RunningTask)) {
	for _, r := range w.running {
		of := e.Repetition == 0 && strings.HasPrefix(r.TaskID, e.Instance+"#") && (isStarting(r.Phase) || r.Phase == runner.Waiting)
		if r.TaskID == e.TaskID() || of {
			f(r)
		}
	}
}

func (w *Tracker) remove(taskID string) {
	for i, r := range w.running {
		if r.TaskID == taskID {
			w.running = append(w.running[:i], w.running[i+1:]...)
			return
		}
	}
}

// Running returns the running tasks and the duration of the run.
func (w *Tracker) Running(now time.Time) ([]RunningTask, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]RunningTask, 0, len(w.running))
	for _, r := range w.running {
		row := *r
		row.Elapsed = now.Sub(r.started).Seconds()
		all = append(all, row)
	}
	if w.started.IsZero() {
		return all, 0
	}
	return all, now.Sub(w.started)
}

// isStarting reports whether a phase precedes SandboxReady.
func isStarting(p runner.Phase) bool { return p == runner.Starting || p == runner.Scrubbing }
