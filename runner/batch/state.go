// Package batch computes the state of a running batch from its events. The live view,
// the plain lines and `mini ctl status` show this state.
package batch

import (
	"slices"
	"sync"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// State is the state of a batch. Only Update changes it. Readers in other goroutines
// than the one that calls Update must hold the lock. Texts are untrusted.
type State struct {
	sync.Mutex

	Started  time.Time                  // start of the run; zero if unknown
	Total    int                        // number of tasks to run
	Skipped  int                        // number of tasks that had a result before this run; not in Total
	Done     int                        // number of tasks that have ended, of Total
	Classes  map[trajectories.Class]int // number of tasks that have ended, by outcome class
	Retries  int                        // number of failed attempts that were or will be retried
	Spent    float64                    // by this run, including its running attempts, in US dollars
	Unpriced bool                       // the price of some calls is unknown

	Evaluated  int                    // number of verdicts
	Verdicts   map[verdicts.Class]int // number of tasks by their newest verdict
	Evaluating map[string]bool        // tasks whose tests run

	Workers []*Task            // task of each worker; nil for an idle worker
	Pulls   []runner.PullState // pulls in progress, in the order in which they began
	Halted  runner.Action      // Pause or Drain while the run is paused or draining, else empty
	Ended   map[string]bool    // tasks that have ended and will not be retried

	verdicts map[string]verdicts.Class // newest verdict of each task
}

// Task is a task that has a worker.
type Task struct {
	ID       string // the instance, with the number of the attempt if there are several ("id#2")
	Instance string
	Attempt  int       // number of the attempt's folder
	Started  time.Time // start of the attempt
	Ended    bool      // the attempt has ended; the worker waits for a retry or is released

	Phase      runner.Phase
	PhaseStart time.Time
	Image      string // image of the sandbox that starts
	Reason     string // why the sandbox waits for the cluster

	Step    int
	Cost    float64 // of the attempt, in US dollars
	Command string  // the running command, or the last one
	// Rerun is the number of Command among the Reruns commands that a resumed attempt
	// runs again. Both are 0 for another command.
	Rerun, Reruns int
}

// New returns the state of a batch before its first event.
func New() *State {
	return &State{
		Classes: map[trajectories.Class]int{}, Verdicts: map[verdicts.Class]int{},
		Ended: map[string]bool{}, Evaluating: map[string]bool{}, verdicts: map[string]verdicts.Class{},
	}
}

// Update updates the state with the next event.
func (s *State) Update(e runner.Event) {
	s.Lock()
	defer s.Unlock()
	switch id := e.TaskID(); e.Type {
	case runner.RunStarted:
		s.Started, s.Total, s.Skipped = e.Time, e.Total-e.Skipped, e.Skipped
		s.Workers = make([]*Task, max(0, min(e.Workers, s.Total)))
	case runner.AttemptStarted:
		delete(s.Ended, id)
		s.Workers[s.workerFor(id)] = &Task{
			ID: id, Instance: e.Instance, Attempt: e.Attempt, Started: e.Time, Phase: runner.PhaseStarting, PhaseStart: e.Time,
		}
	case runner.AttemptResumed:
		s.Spent -= e.Cost // an earlier run has spent it
		s.setStep(s.Task(id), e)
	case runner.CommandFinished, runner.FormatError:
		s.setStep(s.Task(id), e)
	case runner.PhaseChanged:
		s.setPhase(e)
	case runner.AttemptFinished:
		s.finish(e)
	case runner.ControlApplied:
		s.control(e)
	case runner.PullProgress:
		s.setPull(e.Pull)
	case runner.EvaluationRunStarted:
		s.Evaluating[id] = true
	case runner.Verdict:
		s.setVerdict(e)
	}
}

// Task returns the task with an ID if it has a worker, else nil.
func (s *State) Task(id string) *Task {
	if i := s.indexOf(id); i >= 0 {
		return s.Workers[i]
	}
	return nil
}

// IsPulling reports whether an image is being pulled.
func (s *State) IsPulling(image string) bool { return s.pullOf(image) >= 0 }

func (s *State) indexOf(id string) int {
	return slices.IndexFunc(s.Workers, func(t *Task) bool { return t != nil && t.ID == id })
}

// workerFor returns the index of the worker of a task: its own, else the first idle one,
// else a new one.
func (s *State) workerFor(id string) int {
	i := s.indexOf(id)
	if i < 0 {
		i = slices.Index(s.Workers, nil)
	}
	if i < 0 {
		i = len(s.Workers)
		s.Workers = append(s.Workers, nil)
	}
	return i
}

// setPhase sets the phase of the tasks that an event is about. An event about a sandbox
// has no number of an attempt: it is about all attempts at the instance that have not
// begun their first step.
func (s *State) setPhase(e runner.Event) {
	id := e.TaskID()
	for i, t := range s.Workers {
		switch {
		case t == nil:
		case t.ID != id && (e.Repetition != 0 || t.Instance != e.Instance || !isBeforeSteps(t.Phase)):
		case e.Phase == runner.PhaseReleased:
			s.Workers[i] = nil
		default:
			t.setPhase(e)
			if !isBeforeSteps(e.Phase) {
				s.setStep(t, e)
			}
		}
	}
}

func (t *Task) setPhase(e runner.Event) {
	if t.Phase != e.Phase || e.Phase == runner.PhaseRunning {
		t.PhaseStart = e.Time
	}
	t.Phase = e.Phase
	switch e.Phase {
	case runner.PhaseStarting:
		t.Image = e.Text
	case runner.PhaseQueued:
		t.Reason = e.Text
	case runner.PhaseRunning, runner.PhaseRebuilding:
		t.Command, t.Rerun, t.Reruns = e.Command, e.Done, e.Total
	}
}

// IsRunning reports whether Command is running.
func (t *Task) IsRunning() bool {
	return t.Phase == runner.PhaseRunning || t.Phase == runner.PhaseRebuilding
}

// isBeforeSteps reports whether events about a phase may lack the number of the attempt,
// the step and the cost, because they are about a sandbox that starts.
func isBeforeSteps(p runner.Phase) bool {
	return p == runner.PhaseStarting || p == runner.PhaseQueued || p == runner.PhaseScrubbing || p == runner.PhaseWaiting
}

// setStep sets the step of a task, and adds what it has cost since the last event. t is
// nil if the task has no worker.
func (s *State) setStep(t *Task, e runner.Event) {
	if t == nil {
		return
	}
	s.Spent += e.Cost - t.Cost
	t.Step, t.Cost = e.Step, e.Cost
}

// finish counts the end of an attempt.
func (s *State) finish(e runner.Event) {
	outcome := e.Outcome
	s.Spent += float64(outcome.Cost)
	s.Unpriced = s.Unpriced || outcome.Usage.Unpriced > 0
	if t := s.Task(e.TaskID()); t != nil {
		s.Spent -= t.Cost
		t.Cost, t.Ended = float64(outcome.Cost), true
	}
	if e.WillRetry {
		s.Retries++
		return
	}
	s.Done++
	s.Classes[outcome.Class]++
	s.Ended[e.TaskID()] = true
}

// control applies a request to the run, such as pause or requeue.
func (s *State) control(e runner.Event) {
	s.Total = e.Total
	if e.Class != "" { // a task that had ended is requeued
		s.Done--
		s.Classes[e.Class]--
		delete(s.Ended, e.TaskID())
	}
	switch e.Action {
	case runner.Pause, runner.Drain:
		s.Halted = e.Action
	case runner.Resume:
		s.Halted = ""
	case runner.Kill: // its evaluation ends without a verdict
		delete(s.Evaluating, e.TaskID())
	}
}

func (s *State) pullOf(image string) int {
	return slices.IndexFunc(s.Pulls, func(p runner.PullState) bool { return p.Image == image })
}

// setPull updates the pulls in progress. p is nil if an event tells no progress.
func (s *State) setPull(p *runner.PullState) {
	if p == nil {
		return
	}
	i := s.pullOf(p.Image)
	if i < 0 {
		i = len(s.Pulls)
		s.Pulls = append(s.Pulls, *p)
	}
	s.Pulls[i] = *p
	if p.Done {
		s.Pulls = slices.Delete(s.Pulls, i, i+1)
	}
}

// setVerdict counts a verdict. The verdict of a requeued task replaces its earlier one.
func (s *State) setVerdict(e runner.Event) {
	if e.WillRetry {
		return
	}
	id, verdict := e.TaskID(), verdicts.Class(e.Verdict)
	delete(s.Evaluating, id)
	if earlier, ok := s.verdicts[id]; ok {
		s.Verdicts[earlier]--
	}
	s.verdicts[id] = verdict
	s.Verdicts[verdict]++
	s.Evaluated++
}
