package control

import (
	"cmp"
	"slices"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
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

// SetBatch sets Elapsed and Running from the state of a batch. The running tasks are in
// the order in which their attempts started.
func (s *Status) SetBatch(b *batch.State, now time.Time) {
	b.Lock()
	defer b.Unlock()
	if !b.Started.IsZero() {
		s.Elapsed = now.Sub(b.Started).Seconds()
	}
	s.Running = []RunningTask{}
	for _, t := range b.Workers {
		if t == nil {
			continue
		}
		r := RunningTask{
			TaskID: t.ID, Attempt: t.Attempt, Phase: t.Phase, Step: t.Step, Cost: t.Cost, Elapsed: now.Sub(t.Started).Seconds(),
		}
		if t.IsRunning() {
			r.Command = t.Command
		}
		s.Running = append(s.Running, r)
	}
	slices.SortStableFunc(s.Running, func(a, b RunningTask) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
}
