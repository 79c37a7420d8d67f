package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// task is the work at one repetition of an instance: it makes attempts until one has a
// result.
type task struct {
	batch *Batch
	job   *job
	datasets.Instance
	repetition int  // from 1
	single     bool // only one repetition is requested
	submitted  int  // the attempt last passed to Batch.Evaluate

	// The last attempt and its outcome.
	attempt int
	outcome trajectories.Outcome
}

// event returns e with the instance and repetition of the task.
func (t *task) event(e Event) Event {
	e.Instance = t.ID
	if !t.single {
		e.Repetition = t.repetition
	}
	return e
}

// Key implements Work.
func (t *task) Key() string { return "" }

// Try resumes the newest attempt of the task if possible, unless fresh is set. Otherwise,
// and after the resumed attempt diverges, it starts a new attempt. It returns an error if
// the run's folder cannot be written.
func (t *task) Try(ctx context.Context, fresh bool) (End, error) {
	b := t.batch
	for {
		n, journal, err := b.openJournal(t, fresh)
		if err != nil {
			return End{}, fmt.Errorf("instance %s: %w", t.ID, err)
		}
		b.Log.Emit(t.event(Event{Type: AttemptStarted, Attempt: n}))
		if restored := journal.resumeState; restored != nil {
			b.Log.Emit(t.event(Event{
				Type: AttemptResumed, Attempt: n, Step: restored.Attempt.Totals.Own.Steps, Cost: float64(restored.Total().Cost),
				Total: len(restored.Executions), Elapsed: restored.Idle.Seconds(),
			}))
		}
		b.Log.Emit(t.event(Event{Type: PhaseChanged, Phase: PhaseStarting, Attempt: n}))
		bus, closeBus := (*events.Bus)(nil), func() {}
		if b.NewBus != nil {
			bus, closeBus = b.NewBus(t.Instance, n)
		}
		out, err := b.newAttemptRunner(t, n, journal, bus).Run(ctx)
		closeBus()
		if err != nil {
			b.Log.Emit(t.event(Event{Type: Warning, Attempt: n, Text: err.Error()}))
		}
		t.attempt, t.outcome = n, out
		if err = journal.Close(); err == nil && journal.resumed && out.ExitStatus == agent.ErrDiverged.Error() && ctx.Err() == nil {
			b.Log.Emit(t.event(Event{Type: AttemptFinished, Attempt: n, Outcome: &out, WillRetry: true}))
			fresh, err = true, b.store.record(t.ID, t.repetition, n, out)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return End{}, fmt.Errorf("instance %s: %w", t.ID, err)
		}
		return End{
			Temporary: out.Class.IsRetryable() && !isPermanent(out) && !b.breaker.isRetryUseless(out),
			Disrupted: out.ExitStatus == string(env.SandboxDisrupted), Class: out.Class,
			Report: func(willRetry bool) {
				b.Log.Emit(t.event(Event{Type: AttemptFinished, Attempt: n, Outcome: &out, WillRetry: willRetry}))
			},
		}, nil
	}
}

// Finish implements Work: it records the outcome. If the task is done, its submission is
// evaluated.
func (t *task) Finish(wait time.Duration) (more bool, err error) {
	b := t.batch
	if err := b.store.record(t.ID, t.repetition, t.attempt, t.outcome); err != nil {
		return false, fmt.Errorf("instance %s: %w", t.ID, err)
	}
	if wait > 0 {
		b.Log.Emit(t.event(Event{Type: PhaseChanged, Phase: PhaseWaiting, Attempt: t.attempt, Elapsed: wait.Seconds()}))
		return false, nil
	}
	b.breaker.onInstanceEnd(t.outcome)
	t.submit()
	return false, nil
}

// submit queues the evaluation of a submission that is new.
func (t *task) submit() {
	b := t.batch
	if b.Evaluate == nil {
		return
	}
	b.store.mu.Lock()
	selected := b.store.instance(t.ID).selected
	p, ok := selected.Prediction(t.ID, t.repetition)
	if ok {
		n := selected[t.repetition].Attempt
		ok, t.submitted = n != t.submitted, n
	}
	b.store.mu.Unlock()
	if !ok {
		return
	}
	if w := b.Evaluate(t.Instance, t.repetition, p); w != nil {
		b.queue.evaluate(t.job, w)
	}
}

// isPermanent reports whether a retry would fail in the same way.
func isPermanent(out trajectories.Outcome) bool {
	switch out.ExitStatus {
	case string(env.ImageNotFound), string(env.ImageBuildFailed), string(env.RepositoryRefused), string(env.SandboxRefused), string(model.AuthenticationError), string(model.BadRequest), string(model.ScriptExhausted):
		return true
	}
	return false
}
