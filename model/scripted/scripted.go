// Package scripted is a model that says what a file tells it to: for the demo,
// for tests, and to run a recorded attempt again.
//
// A script is YAML or JSON: a list of replies, or a map from instance id to
// such a list, where "*" serves every other instance. A reply is a string, or
//
//	content: text of the reply        # required, but where there are tool_calls
//	reasoning_content: what it thought before that
//	tool_calls:                       # any of:
//	  - ls -la                        # a command for the tool bash
//	  - {command: ls -la, id: call_7} # likewise, with an id of its own
//	  - {name: python, arguments: "print("}  # whatever a model might write
//	cost: 0.01                        # US dollars
//	latency: 1.5                      # seconds before the answer
//	finish_reason: length             # default: stop
//	usage: {prompt_tokens: 10, completion_tokens: 5}  # also cached_tokens,
//	                                  # cache_write_tokens, reasoning_tokens
//
// A recorded attempt (.traj.json, or a journal) serves as a script too: the
// replies of its model, in their order, with its tool calls where it made some.
//
//	script, err := scripted.Load("replies.yaml")
//	m, err := script.For("django__django-11099")
package scripted

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/minibench/mini/model"
)

// maxFile bounds a script, in bytes.
const maxFile = 512 << 20

// Script is the replies of a file, by instance. It is never changed.
type Script struct {
	name string
	by   map[string][]reply
}

// reply is one answer, ready to be given.
type reply struct {
	model.Reply
	latency time.Duration
}

// wildcard serves the instances that are not named.
const wildcard = "*"

// Load reads a script of at most 512 MB. Errors name file and line.
func Load(path string) (*Script, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("load script %s: %d bytes, allowed %d", path, info.Size(), maxFile)
	}
	data, err := os.ReadFile(path) //nolint:gosec // G304: reading the named file is the purpose
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	return Parse(path, data)
}

// Over is a script that has the replies of s, and those of another one for the
// instances that s does not name.
func (s *Script) Over(below *Script) *Script {
	by := maps.Clone(below.by)
	maps.Copy(by, s.by)
	return &Script{name: s.name, by: by}
}

// For returns a model that gives the instance's replies from the first one on,
// or, in a conversation that it is in the middle of, from where that has come to:
// an attempt that goes on finds its next reply. An instance that the script does not know is an error that names it.
func (s *Script) For(instanceID string) (model.Model, error) {
	replies, err := s.replies(instanceID)
	if err != nil {
		return nil, err
	}
	return &scripted{name: s.name, replies: replies}, nil
}

func (s *Script) replies(instanceID string) ([]reply, error) {
	replies, ok := s.by[instanceID]
	if !ok {
		replies, ok = s.by[wildcard]
	}
	if !ok {
		return nil, fmt.Errorf("%s has no replies for instance %q, and none under %q", s.name, instanceID, wildcard)
	}
	return replies, nil
}

// scripted gives one reply after the other. What it is asked only tells it how
// many it has given.
type scripted struct {
	name    string
	replies []reply
	mu      sync.Mutex
	next    int
}

// Query implements model.Model.
func (m *scripted) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	if ctx.Err() != nil {
		return model.Reply{}, context.Cause(ctx)
	}
	r, ok := m.take(messages)
	if !ok {
		return model.Reply{}, &model.Error{
			Status: model.ScriptExhausted,
			Hint:   "add replies to the script, or let one of them submit",
			Err:    fmt.Errorf("%s: %w (it has %d)", m.name, ErrNoMore, len(m.replies)),
		}
	}
	if err := wait(ctx, r.latency); err != nil {
		return model.Reply{}, err
	}
	if tell := model.Deltas(ctx); tell != nil {
		if thought := r.Message.Reasoning; thought != "" {
			tell(model.Delta{Reasoning: thought})
		}
		if text := r.Message.Content; text != "" {
			tell(model.Delta{Text: text})
		}
	}
	return r.Reply, nil
}

func (m *scripted) take(messages []model.Message) (reply, bool) {
	given := 0
	for _, msg := range messages {
		if msg.Role == model.Assistant {
			given++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// A prompt may hold fewer than were given: some of a long history.
	if m.next = max(m.next, given); m.next >= len(m.replies) {
		return reply{}, false
	}
	m.next++
	return m.replies[m.next-1], true
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
