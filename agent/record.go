package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Recorder stores records in order. *trajectories.Journal implements it.
type Recorder interface {
	Append(t trajectories.Type, data any) (trajectories.Record, error)
}

// ChildJournal is the journal of a subagent. *subagents.Journal implements it.
type ChildJournal interface {
	Recorder
	Number() int  // of the child, from 1
	Name() string // of the file, relative to the folder of the attempt's journal
	Close() error
}

// Observer receives the events of an attempt as they happen, those without a line too,
// but no pieces of replies and outputs.
type Observer interface {
	// Observe is called for an event of the attempt, by tools from their own
	// goroutines. It must return quickly and not change what e points to.
	Observe(e events.Event)
}

// addMessages records messages with a cause.
func (r *run) addMessages(cause trajectories.Cause, messages ...model.Message) error {
	return r.recordMessages(newFeedback("", cause, messages...).Messages)
}

// recordMessages records messages.
func (r *run) recordMessages(messages []trajectories.Message) error {
	for _, m := range messages {
		if _, err := r.record(trajectories.TypeMessage, m); err != nil {
			return err
		}
	}
	return nil
}

// record appends a record, adds it to the attempt and passes it to the observers.
func (r *run) record(t trajectories.Type, data any) (trajectories.Record, error) {
	r.toolAttempt.mu.Lock()
	defer r.toolAttempt.mu.Unlock()
	return r.recordLocked(t, data)
}

// recordLocked is record for a caller that holds toolAttempt.mu.
func (r *run) recordLocked(t trajectories.Type, data any) (trajectories.Record, error) {
	rec, err := r.appendRecord(t, data)
	if err == nil {
		r.notify(r.recorded(data))
	}
	return rec, err
}

// recordExecution is record for a command whose output was published in chunks. The
// journal may keep less of the output than the sandbox.
func (r *run) recordExecution(x trajectories.Execution) error {
	r.toolAttempt.mu.Lock()
	defer r.toolAttempt.mu.Unlock()
	_, err := r.appendRecord(trajectories.TypeExecution, limitOutput(x, r.cfg.JournalOutput))
	x.Output = nil
	r.notify(r.recorded(x))
	return err
}

// appendRecord appends a record and adds it to the attempt. The caller holds toolAttempt.mu if
// tools may work.
func (r *run) appendRecord(t trajectories.Type, data any) (trajectories.Record, error) {
	rec, err := r.Recorder.Append(t, data)
	r.attempt.AddData(rec, data) // if it could not be recorded, only its spending counts
	return rec, err
}

// recorded returns the event of a record. The caller holds toolAttempt.mu if tools may
// work.
func (r *run) recorded(data any) events.Recorded {
	e := events.Recorded{Step: r.steps(), Spent: r.attempt.Totals.Spent(), Data: data}
	if m, ok := data.(trajectories.Message); ok && m.Cause == trajectories.CauseReply {
		e.Call = r.attempt.LastReply().Call
	}
	return e
}

// notify passes an event to the observer and the subscribers.
func (r *run) notify(e events.Event) {
	if r.Observer != nil {
		r.Observer.Observe(e)
	}
	r.Events.Publish(e)
}

// notifyLimit reports that a limit ended the attempt or was raised. The limit
// on steps includes those of subagents.
func (r *run) notifyLimit(reached error, before Limits, raised bool) {
	e := events.LimitReached{Limit: events.LimitSteps, Steps: r.limits.Steps, Cost: model.Cost(r.limits.Cost), Raised: raised}
	switch {
	case errors.Is(reached, ErrTimeExceeded):
		e.Limit = events.LimitTime
	case before.Steps == 0 || r.total().Steps < before.Steps:
		e.Limit = events.LimitCost
	}
	r.notify(e)
}

// MemoryRecorder is a Recorder that keeps records in memory. Functions that
// read journals can read its records:
//
//	m := agent.NewMemoryRecorder()
//	out := a.Run(ctx, agent.Session{Recorder: m, ...})
//	t, err := trajectories.Fold(m.Records())
//
// trajectories.WriteJournal writes them to a journal, Attempt.WriteTraj writes a
// .traj.json file. A MemoryRecorder is for one attempt and safe for concurrent
// use.
type MemoryRecorder struct {
	mu      sync.Mutex
	records []trajectories.Record
}

var _ Recorder = (*MemoryRecorder)(nil)

// NewMemoryRecorder returns a MemoryRecorder that holds only a header record.
func NewMemoryRecorder() *MemoryRecorder {
	m := &MemoryRecorder{}
	_, _ = m.Append(trajectories.TypeHeader, trajectories.Header{Format: trajectories.Format, Attempt: 1}) // a header always has a JSON form
	return m
}

// Append implements Recorder. If data cannot be encoded as JSON, nothing is
// appended.
func (m *MemoryRecorder) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	body, err := json.Marshal(data)
	if err != nil {
		return trajectories.Record{}, fmt.Errorf("append %s record: %w", t, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.records)
	r := trajectories.Record{ID: n + 1, Parent: n, Type: t, Time: time.Now().UTC(), Data: body}
	m.records = append(m.records, r)
	return r, nil
}

// Records yields the records in order, as trajectories.Read does for a journal,
// including those appended during the iteration.
func (m *MemoryRecorder) Records() iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for i := 0; ; i++ {
			m.mu.Lock()
			if i >= len(m.records) {
				m.mu.Unlock()
				return
			}
			r := m.records[i]
			m.mu.Unlock()
			if !yield(r, nil) {
				return
			}
		}
	}
}
