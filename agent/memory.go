package agent

import (
	"encoding/json"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/minibench/mini/trajectories"
)

// Memory is a Recorder without a file. It keeps what a journal would, so that
// whatever reads journals reads it, too:
//
//	m := agent.NewMemory()
//	out := a.Run(ctx, agent.Session{Recorder: m, ...})
//	t, err := trajectories.Gather(m.Records())
//
// trajectories.Write makes a journal of it, trajectories.DeriveFrom a .traj.json.
// It is for one attempt, and safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	records []trajectories.Record
}

var _ Recorder = (*Memory)(nil)

// NewMemory returns a Memory with a header and nothing else.
func NewMemory() *Memory { return NewMemoryOf(trajectories.Header{Attempt: 1}) }

// NewMemoryOf returns a Memory with this header; Format is filled in.
func NewMemoryOf(h trajectories.Header) *Memory {
	m := &Memory{}
	h.Format = trajectories.Format
	_, _ = m.Append(trajectories.TypeHeader, h) // which has a JSON form
	return m
}

// Append implements Recorder. Data that has no JSON form is refused and changes
// nothing.
func (m *Memory) Append(t trajectories.Type, data any) (trajectories.Record, error) {
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

// Records are what was appended, in order, as trajectories.Read gives those of a
// journal; those, too, that come while one reads.
func (m *Memory) Records() iter.Seq2[trajectories.Record, error] {
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
