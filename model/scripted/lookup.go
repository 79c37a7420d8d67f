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

// Reply returns the reply to an instance after step earlier replies, and its
// latency. It is for callers that ask out of order; For gives the replies in
// sequence. A step after the last reply is ErrExhausted.
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
