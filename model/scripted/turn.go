package scripted

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/minibench/mini/model"
)

// ErrNoMore is that a script has no reply for so late a step.
var ErrNoMore = errors.New("the script has no more replies")

// Names are the instances that the script names, sorted; "*" is none.
func (s *Script) Names() []string {
	names := slices.Sorted(maps.Keys(s.by))
	return slices.DeleteFunc(names, func(name string) bool { return name == wildcard })
}

// Reply is what the script says to an instance after step earlier replies, and
// the time it takes. It is for those who ask out of order; For is for a model
// that gives one reply after the other. A step beyond the last one is
// ErrNoMore.
func (s *Script) Reply(instanceID string, step int) (model.Reply, time.Duration, error) {
	replies, err := s.replies(instanceID)
	if err != nil {
		return model.Reply{}, 0, err
	}
	if step < 0 || step >= len(replies) {
		return model.Reply{}, 0, fmt.Errorf("%s: %w: step %d of %d", s.name, ErrNoMore, step+1, len(replies))
	}
	return replies[step].Reply, replies[step].latency, nil
}
