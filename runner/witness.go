package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/pictures"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// witness records one attempt, and tells the run of each step as it happens.
// The agent does one thing at a time; its children, which use its model and spend
// what is its, do so at the same time.
type witness struct {
	mu      sync.Mutex
	journal *trajectories.Journal
	log     *Log
	purse   *purse
	strikes *strikes
	task    task
	attempt int
	step    int
	cost    float64
	phase   Phase
	actions []string // the commands that the last reply asked for
}

// Append implements agent.Recorder.
func (w *witness) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	rec, err := w.journal.Append(t, data)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch d := data.(type) {
	case trajectories.Spent:
		w.cost += float64(d.Cost)
		w.purse.pay(d.Cost)
	case trajectories.Call:
		if t == trajectories.TypeSummary { // it costs, and is no step
			w.cost += float64(d.Cost)
			w.purse.pay(d.Cost)
			break
		}
		w.step++
		if d.Error == "" {
			w.strikes.answered()
		}
		w.cost += float64(d.Cost)
		w.purse.pay(d.Cost)
	case trajectories.Execution:
		e := w.event(Step)
		e.Command, e.ExitCode, e.TimedOut = w.log.shorten(d.Command), d.ExitCode, d.TimedOut
		w.log.Emit(e)
	case trajectories.Decision:
		if d.Action != trajectories.Allow {
			e := w.event(Refused)
			e.Command, e.Text = w.log.shorten(d.Command), w.log.shorten(d.Reason)
			w.log.Emit(e)
		}
	case trajectories.Message:
		if d.Cause == trajectories.CauseReply {
			w.actions = d.Actions
		}
		if d.Cause == trajectories.CauseFormatError {
			w.log.Emit(w.event(FormatError))
		}
	case trajectories.Outcome:
		if d.ExitStatus == agent.ErrRepeatedFormatError.Error() { // the last error is no message: nothing follows it
			e := w.event(FormatError)
			e.Text = "the last that is allowed in a row"
			w.log.Emit(e)
		}
	}
	return rec, err
}

func (w *witness) event(t EventType) Event {
	return w.task.event(Event{Type: t, Attempt: w.attempt, Step: w.step, Cost: w.cost})
}

// doing tells of a phase as it begins.
func (w *witness) doing(p Phase, command string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p == Closing && w.phase == Closing {
		return
	}
	w.phase = p
	e := w.event(Doing)
	e.Phase, e.Command = p, w.log.shorten(command)
	if p == Thinking || p == Waiting {
		e.Step++ // the one that this call begins
	}
	w.log.Emit(e)
}

// scrubbing tells of a scrub, which belongs to the start.
func (w *witness) scrubbing() {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.event(Doing)
	e.Phase = Scrubbing
	w.log.Emit(e)
}

// watchedModel tells of each call as it begins, and of its waits for the
// provider.
type watchedModel struct {
	model.Model
	w *witness
}

// Query implements model.Model.
func (m watchedModel) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	m.w.doing(Thinking, "")
	reply, err := m.Model.Query(model.WithPause(ctx, func() func() {
		end := model.Pause(ctx) // of whoever asked before
		m.w.doing(Waiting, "")
		return func() {
			m.w.doing(Thinking, "")
			end()
		}
	}), messages)
	m.w.strikes.failed(err)
	return reply, err
}

// watchedBox tells of each command as it begins.
type watchedBox struct {
	env.Environment
	w *witness
}

// Unwrap says what it is around, see env.FilesOf.
func (b watchedBox) Unwrap() env.Environment { return b.Environment }

// Execute implements env.Environment. What no reply asked for is the agent's
// own: before the first call that belongs to the start, and after it to the
// end, where the diff is taken.
func (b watchedBox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	switch {
	case worktree.TakesHash(c.Script): // while a model is asked
	case worktree.IsScrub(c):
		b.w.scrubbing()
	case b.w.phase == Rebuilding: // which has told of it
	case c.Script == pictures.Script: // it belongs to the command before it
	case slices.Contains(b.w.actions, c.Script):
		b.w.doing(Running, c.Script)
	case b.w.phase != "":
		b.w.doing(Closing, "")
	}
	return b.Environment.Execute(ctx, c)
}
