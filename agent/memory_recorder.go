package agent

import (
	"encoding/json"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/minibench/mini/trajectories"
)

// MemoryRecorder is a Recorder that keeps records in memory. Functions that
// read journals can read its records:
//
//	m := agent.NewMemoryRecorder()
//	out := a.Run(ctx, agent.Session{Recorder: m, ...})
//	t, err := trajectories.BuildTranscript(m.Records())
//
// trajectories.WriteJournal writes them to a journal, WriteTrajRecords to a
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
