package trajectories

import (
	"time"

	"github.com/minibench/mini/model"
)

// Spending is the number of steps, and the usage and cost of all model calls.
type Spending struct {
	Steps int // model calls, without those for summaries
	Usage model.Usage
	Cost  model.Cost
}

// Add returns the sum of s and o.
func (s Spending) Add(o Spending) Spending {
	return Spending{s.Steps + o.Steps, s.Usage.Add(o.Usage), s.Cost + o.Cost}
}

// Totals adds up the records of an attempt. Abandoned records count, because their calls
// were made.
type Totals struct {
	// Own counts the calls of the attempt itself, Children those of its subagents. Calls
	// that a fork inherited count as steps only; Inherited is the number of these.
	Own, Children Spending
	Inherited     int
	Start, End    time.Time // of the first and the newest record
	// Idle is the time between the sessions. Times divides the rest by activity.
	Idle  time.Duration
	Times Times
	// Warnings are those of the newest outcome, also if the attempt was resumed after it.
	Warnings []string

	active time.Duration // of the earlier periods
	period workPeriod
	newest time.Time // End, but not before Start in a fork
}

// Spent returns the spending of the attempt and its subagents.
func (t *Totals) Spent() Spending { return t.Own.Add(t.Children) }

// ActiveTime is the time that counts against the time limit of the attempt.
func (t *Totals) ActiveTime() time.Duration { return t.active + t.period.duration() }

// IdleUntil is the Idle of an attempt that is resumed at a time.
func (t *Totals) IdleUntil(resumed time.Time) time.Duration {
	if t.newest.IsZero() {
		return t.Idle
	}
	return t.Idle + max(0, resumed.Sub(t.newest))
}

// workPeriod is a period in which the agent worked without a break.
type workPeriod struct {
	start, end time.Time // from the start of the first call or command to the end of the last
	waited     time.Duration
}

func (w *workPeriod) duration() time.Duration { return max(0, w.end.Sub(w.start)-w.waited) }

// extend adds work of the given duration that ended at until. waited is the part of the
// duration spent waiting for the provider.
func (w *workPeriod) extend(until time.Time, duration, waited Seconds) {
	if w.start.IsZero() {
		w.start = until.Add(-max(0, time.Duration(duration)))
	}
	w.end, w.waited = until, w.waited+max(0, time.Duration(waited))
}

func (t *Totals) endPeriod() { t.active, t.period = t.active+t.period.duration(), workPeriod{} }

// Times divides the duration of an attempt by activity. Other activities are not
// counted. SandboxStart includes the creation of the first sandbox, which is before
// Outcome.Start.
type Times struct {
	SandboxStart Seconds `json:"start"`    // creating the sandbox, with image pulls and replayed commands
	Scrub        Seconds `json:"scrub"`    // scrubbing the repository
	Model        Seconds `json:"model"`    // model calls, including waits for the provider
	Commands     Seconds `json:"commands"` // commands of replies, and the start-up command
	Diff         Seconds `json:"diff"`     // the working tree diff, and patch checks
}
