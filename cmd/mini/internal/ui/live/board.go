package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// board is the state of a run, computed from its events. It stores untrusted text unsanitized; the
// methods that draw sanitize it.
type board struct {
	start          time.Time                  // start of the run
	total          int                        // number of instances to run
	skipped        int                        // number of instances that had a result before this run
	done           int                        // number of instances that have ended
	classCounts    map[trajectories.Class]int // number of instances that have ended, by outcome class
	verdictCounts  map[verdicts.Class]int     // number of evaluated instances, by verdict
	latestVerdicts map[string]verdicts.Class  // newest verdict, by instance name
	evaluating     map[string]bool            // instances under evaluation
	retries        int                        // number of failed attempts that were or will be retried
	cost           float64                    // cost of finished attempts in this run, in US dollars
	unpriced       bool                       // the price of some calls is unknown
	workers        []worker
	workerIndex    map[string]int     // index in workers, by instance name
	ended          map[string]bool    // instances that have ended and will not be retried
	pulls          []runner.PullState // pulls in progress, in the order in which they began
	log            []logEntry         // newest last
	warned         map[string]bool    // logged warnings, by report.MessagePattern
	maxNameLen     int                // length of the longest instance name so far, in bytes
	message        string             // the last message of ShowMessage
	// halted is Pause or Drain while the run is paused or draining, else empty.
	halted runner.Action
}

// worker is one row of the table.
type worker struct {
	name       string // the instance with its repetition ("id#2"); empty while idle
	instanceID string // the instance id
	attempt    int
	phase      runner.Phase
	phaseStart time.Time
	image      string // image of the sandbox being started
	reason     string // why the sandbox waits for the cluster
	step       int
	cost       float64 // of the attempt so far, in US dollars
	command    string  // the running command, or the last one
	isRunning  bool    // command is running
}

// logEntry is a line of the log: a finished attempt, a verdict, a warning or an order.
type logEntry struct {
	at         time.Time
	name       string
	instanceID string // the instance id; set only for finished attempts
	attempt    int
	class      trajectories.Class // outcome of a finished attempt, else empty
	verdict    verdicts.Class     // set only for verdicts
	retry      bool               // the attempt or evaluation is retried
	text       string
}

// Bounds of the board.
const (
	maxLog      = 100
	maxWarnings = 1000
	maxText     = 400 // bytes of an error or warning, without the ellipsis
)

func newBoard() *board {
	return &board{
		classCounts: map[trajectories.Class]int{}, verdictCounts: map[verdicts.Class]int{},
		latestVerdicts: map[string]verdicts.Class{}, evaluating: map[string]bool{},
		workerIndex: map[string]int{}, ended: map[string]bool{}, warned: map[string]bool{},
	}
}

// handleEvent updates the board with one event.
func (b *board) handleEvent(e runner.Event) {
	switch e.Type {
	case runner.RunStarted:
		b.start, b.total, b.skipped = e.Time, e.Total-e.Skipped, e.Skipped
		b.workers = make([]worker, max(0, min(e.Workers, b.total)))
	case runner.AttemptStarted:
		w := b.rowOf(e.TaskID())
		delete(b.ended, e.TaskID())
		*w = worker{name: e.TaskID(), instanceID: e.Instance, attempt: e.Attempt, phase: runner.PhaseStarting, phaseStart: e.Time}
		b.maxNameLen = max(b.maxNameLen, len(e.TaskID()))
	case runner.AttemptResumed:
		// Later the cost of the outcome is added, which includes what the interrupted run has
		// spent. Subtract that here: this run has not spent it.
		b.cost -= e.Cost
		w := b.rowOf(e.TaskID())
		w.step, w.cost = e.Step, e.Cost
	case runner.PhaseChanged:
		b.handlePhase(e)
	case runner.SandboxReady:
		for _, text := range e.Warnings {
			b.addWarning(e, text)
		}
	case runner.CommandFinished:
		w := b.rowOf(e.TaskID())
		w.step, w.cost, w.isRunning = e.Step, e.Cost, false
	case runner.FormatError:
		b.rowOf(e.TaskID()).cost = e.Cost
	case runner.PullProgress:
		b.handlePull(e)
	case runner.Warning:
		b.addWarning(e, e.Text)
	case runner.ControlApplied:
		b.handleControl(e)
	case runner.SandboxKept:
		b.addLog(logEntry{at: e.Time, name: e.TaskID(), text: clip(e.Text)})
	case runner.AttemptFinished:
		b.handleFinished(e)
	case runner.EvaluationRunStarted:
		b.evaluating[e.TaskID()] = true
	case runner.Verdict:
		b.handleVerdict(e)
	}
}

// handleControl updates the board after an order to the run, such as pause or requeue.
func (b *board) handleControl(e runner.Event) {
	b.total = e.Total
	if e.Class != "" { // the order requeues an instance that had ended
		b.done--
		b.classCounts[e.Class]--
		delete(b.ended, e.TaskID())
	}
	switch e.Action {
	case runner.Pause, runner.Drain:
		b.halted = e.Action
	case runner.Resume:
		b.halted = ""
	}
	text := fmt.Sprintf("%s (%s)", clip(e.Text), runner.SourceName(e.Source))
	b.addLog(logEntry{at: e.Time, name: e.TaskID(), text: text})
}

// rowOf returns the row of an instance. An instance without a row gets the first idle row, or a
// new row.
func (b *board) rowOf(instance string) *worker {
	if i, ok := b.workerIndex[instance]; ok {
		return &b.workers[i]
	}
	i := slices.IndexFunc(b.workers, func(w worker) bool { return w.name == "" })
	if i < 0 {
		i = len(b.workers)
		b.workers = append(b.workers, worker{})
	}
	b.workerIndex[instance] = i
	b.workers[i] = worker{name: instance}
	return &b.workers[i]
}

func (b *board) handlePhase(e runner.Event) {
	if e.Phase == runner.PhaseReleased {
		if i, ok := b.workerIndex[e.TaskID()]; ok {
			delete(b.workerIndex, e.TaskID())
			b.workers[i] = worker{}
		}
		return
	}
	for _, w := range b.rowsFor(e) {
		w.setPhase(e)
	}
}

// rowsFor returns the rows that an event is about. Sandbox events name only the instance; they
// apply to all of its repetitions that are starting.
func (b *board) rowsFor(e runner.Event) []*worker {
	if _, ok := b.workerIndex[e.TaskID()]; ok || e.Repetition != 0 {
		return []*worker{b.rowOf(e.TaskID())}
	}
	var rows []*worker
	for i := range b.workers {
		w := &b.workers[i]
		if isBeforeSteps(w.phase) && strings.HasPrefix(w.name, e.Instance+"#") {
			rows = append(rows, w)
		}
	}
	if rows == nil {
		rows = append(rows, b.rowOf(e.TaskID()))
	}
	return rows
}

// setPhase updates the worker with the phase in an event.
func (w *worker) setPhase(e runner.Event) {
	if w.phase != e.Phase || e.Phase == runner.PhaseRunning {
		w.phaseStart = e.Time
	}
	w.phase, w.isRunning = e.Phase, false
	switch e.Phase {
	case runner.PhaseStarting:
		w.image = e.Text
	case runner.PhaseQueued:
		w.reason = clip(e.Text)
	case runner.PhaseRunning:
		w.command, w.isRunning = e.Command, true
	case runner.PhaseRebuilding:
		w.command, w.isRunning = fmt.Sprintf("%d of %d  %s", e.Done, e.Total, e.Command), true
	}
	if !isBeforeSteps(e.Phase) {
		w.step, w.cost = e.Step, e.Cost
	}
}

// isBeforeSteps reports whether events about a phase may lack the repetition, the step and
// the cost, because they are about a sandbox that is starting.
func isBeforeSteps(p runner.Phase) bool {
	switch p {
	case runner.PhaseStarting, runner.PhaseQueued, runner.PhaseScrubbing, runner.PhaseWaiting:
		return true
	}
	return false
}

// handlePull updates the image pulls in progress.
func (b *board) handlePull(e runner.Event) {
	if e.Pull == nil {
		return
	}
	i := slices.IndexFunc(b.pulls, func(p runner.PullState) bool { return p.Image == e.Pull.Image })
	switch {
	case e.Pull.Done && i >= 0:
		b.pulls = slices.Delete(b.pulls, i, i+1)
	case e.Pull.Done:
	case i >= 0:
		b.pulls[i] = *e.Pull
	default:
		b.pulls = append(b.pulls, *e.Pull)
	}
}

// isPulling reports whether an image is being pulled.
func (b *board) isPulling(image string) bool {
	return image != "" && slices.ContainsFunc(b.pulls, func(p runner.PullState) bool { return p.Image == image })
}

// addWarning logs a warning, but only the first one of each pattern, for up to maxWarnings
// patterns.
func (b *board) addWarning(e runner.Event, text string) {
	text = clip(text)
	pattern := report.MessagePattern(text, e.Instance)
	if b.warned[pattern] || len(b.warned) >= maxWarnings {
		return
	}
	b.warned[pattern] = true
	b.addLog(logEntry{at: e.Time, name: e.TaskID(), text: text})
}

func (b *board) handleFinished(e runner.Event) {
	outcome := e.Outcome
	if outcome == nil {
		return
	}
	b.cost += float64(outcome.Cost)
	b.unpriced = b.unpriced || outcome.Usage.Unpriced > 0
	b.rowOf(e.TaskID()).cost = 0
	if e.WillRetry {
		b.retries++
	} else {
		b.done++
		b.classCounts[outcome.Class]++
		b.ended[e.TaskID()] = true
	}
	b.addLog(logEntry{
		at: e.Time, name: e.TaskID(), instanceID: e.Instance, attempt: e.Attempt,
		class: outcome.Class, retry: e.WillRetry, text: outcomeText(outcome),
	})
}

// handleVerdict records a verdict. If the instance was requeued, the verdict replaces the
// earlier one.
func (b *board) handleVerdict(e runner.Event) {
	if !e.WillRetry {
		delete(b.evaluating, e.TaskID())
		b.verdictCounts[b.latestVerdicts[e.TaskID()]]--
		b.latestVerdicts[e.TaskID()] = verdicts.Class(e.Verdict)
		b.verdictCounts[verdicts.Class(e.Verdict)]++
	}
	b.addLog(logEntry{
		at: e.Time, name: e.TaskID(), verdict: verdicts.Class(e.Verdict), retry: e.WillRetry,
		text: clip(report.VerdictText(e)),
	})
}

func (b *board) addLog(entry logEntry) {
	if len(b.log) == maxLog {
		b.log = slices.Delete(b.log, 0, 1)
	}
	b.log = append(b.log, entry)
}

// setMessage sets the message in the footer.
func (b *board) setMessage(text string) {
	b.message = strings.TrimPrefix(strings.TrimSpace(clip(text)), "mini: ")
}

// spent returns the cost so far in US dollars, including running attempts.
func (b *board) spent() float64 {
	sum := b.cost
	for _, w := range b.workers {
		sum += w.cost
	}
	return sum
}

// perHour returns the number of instances finished per hour so far.
func (b *board) perHour(now time.Time) float64 {
	if elapsed := now.Sub(b.start); b.done > 0 && elapsed > 0 {
		return float64(b.done) / elapsed.Hours()
	}
	return 0
}

// timeLeft estimates the remaining time. It is negative if unknown, e.g. while paused.
func (b *board) timeLeft(now time.Time) time.Duration {
	rate := b.perHour(now)
	if rate == 0 || b.done >= b.total || b.halted != "" {
		return -1
	}
	return time.Duration(float64(b.total-b.done) / rate * float64(time.Hour))
}

// clip shortens a text to maxText bytes, and an ellipsis.
func clip(s string) string { return text.Clip(s, maxText) }
