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
	// Queue is nil when all attempts have ended and only evaluations continue.
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

// Provider is the rate limit state of a model's endpoint.
type Provider struct {
	Endpoint string `json:"endpoint"` // host of the endpoint
	runner.ProviderState
}

// Disk is the disk space of a run, in bytes; nil if unknown.
type Disk struct {
	RunFree    *int64 `json:"run_free"`    // free space for the run's folder
	EngineFree *int64 `json:"engine_free"` // free space for the container engine's images and containers
	// ImageBudget limits the size of the images that mini pulled; nil if there is
	// no limit. Images is their size; nil until it is measured.
	ImageBudget *int64 `json:"image_budget,omitempty"`
	Images      *int64 `json:"images,omitempty"`
}

// Tracker tracks the running tasks of a run from its events. The zero value is ready
// to use. Its methods are safe for concurrent use.
type Tracker struct {
	mu      sync.Mutex
	started time.Time
	running []*RunningTask // in the order in which their attempts started
}

// Update processes an event.
func (t *Tracker) Update(e runner.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Type {
	case runner.RunStarted:
		t.started, t.running = e.Time, nil
	case runner.AttemptStarted:
		t.remove(e.TaskID())
		t.running = append(t.running, &RunningTask{TaskID: e.TaskID(), Attempt: e.Attempt, Phase: runner.PhaseStarting, started: e.Time})
	case runner.CommandFinished:
		t.forEach(e, func(r *RunningTask) { r.Step, r.Cost = e.Step, e.Cost })
	case runner.PhaseChanged:
		if e.Phase == runner.PhaseReleased {
			t.remove(e.TaskID())
			return
		}
		t.forEach(e, func(r *RunningTask) { r.setPhase(e) })
	}
}

func (r *RunningTask) setPhase(e runner.Event) {
	r.Phase, r.Command = e.Phase, e.Command
	if !isStarting(e.Phase) && e.Phase != runner.PhaseWaiting {
		r.Step, r.Cost = e.Step, e.Cost
	}
}

// forEach applies f to the tasks of an event. Events about starting a sandbox have
// no repetition; they apply to all repetitions that are starting or waiting.
func (t *Tracker) forEach(e runner.Event, f func(*RunningTask)) {
	for _, r := range t.running {
		isSandboxEvent := e.Repetition == 0 && strings.HasPrefix(r.TaskID, e.Instance+"#") && (isStarting(r.Phase) || r.Phase == runner.PhaseWaiting)
		if r.TaskID == e.TaskID() || isSandboxEvent {
			f(r)
		}
	}
}

func (t *Tracker) remove(taskID string) {
	for i, r := range t.running {
		if r.TaskID == taskID {
			t.running = append(t.running[:i], t.running[i+1:]...)
			return
		}
	}
}

// Running returns the running tasks and the duration of the run.
func (t *Tracker) Running(now time.Time) ([]RunningTask, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]RunningTask, 0, len(t.running))
	for _, r := range t.running {
		row := *r
		row.Elapsed = now.Sub(r.started).Seconds()
		all = append(all, row)
	}
	if t.started.IsZero() {
		return all, 0
	}
	return all, now.Sub(t.started)
}

// isStarting reports whether a phase precedes SandboxReady.
func isStarting(p runner.Phase) bool {
	return p == runner.PhaseStarting || p == runner.PhaseQueued || p == runner.PhaseScrubbing
}
