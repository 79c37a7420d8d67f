package scripted

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/minibench/mini/model"
)

// ErrExhausted reports that a script has no reply for a step.
var ErrExhausted = errors.New("the script has no more replies")

// InstanceIDs returns the instances that the script names, sorted, without "*".
func (s *Script) InstanceIDs() []string {
	names := slices.Sorted(maps.Keys(s.replies))
	return slices.DeleteFunc(names, func(name string) bool { return name == wildcard })
}

// Reply returns the reply of an instance at a step, counted from 0, and the latency of
// the reply. If there is no reply at the step, the error wraps ErrExhausted. See For for
// the replies in order.
func (s *Script) Reply(instanceID string, step int) (model.Reply, time.Duration, error) {
	replies, err := s.repliesFor(instanceID)
	if err != nil {
		return model.Reply{}, 0, err
	}
	if step < 0 || step >= len(replies) {
		return model.Reply{}, 0, fmt.Errorf("%s: %w: step %d of %d", s.name, ErrExhausted, step+1, len(replies))
	}
	return replies[step].Reply, replies[step].latency, nil
}
