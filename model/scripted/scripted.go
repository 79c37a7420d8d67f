// Package scripted is a model whose replies come from a file: for the demo, for
// tests, and to rerun a recorded attempt.
//
// A script is YAML or JSON: a list of replies, or a map from instance id to
// such a list, where "*" serves every other instance. A reply is a string, or
//
//	content: text of the reply        # required without tool_calls
//	reasoning_content: thinking before the content
//	tool_calls:                       # any of:
//	  - ls -la                        # a command for the tool bash
//	  - {command: ls -la, id: call_7} # the same, with an id
//	  - {name: python, arguments: "print("}  # anything a model might send
//	cost: 0.01                        # US dollars
//	latency: 1.5                      # seconds before the reply
//	finish_reason: length             # default: stop, or tool_calls
//	usage: {prompt_tokens: 10, completion_tokens: 5}  # also cached_tokens,
//	                                  # cache_write_tokens, reasoning_tokens
//
// Package trajectories/scripts reads recorded attempts as scripts.
//
//	script, err := scripted.Parse("replies.yaml", data)
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

// maxFileSize bounds a script, in bytes.
const maxFileSize = 512 << 20

// Script holds the replies of a file by instance. It is immutable.
type Script struct {
	name    string
	replies map[string][]reply
}

// reply is one reply with its latency.
type reply struct {
	model.Reply
	latency time.Duration
}

// wildcard is the key of the replies for all other instances.
const wildcard = "*"

// New returns a script with the content and the tool calls of these messages as
// its replies, for every instance.
func New(name string, messages []model.Message) *Script {
	list := make([]reply, len(messages))
	for i, m := range messages {
		list[i] = withCalls(newReply(m.Content), m.ToolCalls)
	}
	return &Script{name: name, replies: map[string][]reply{wildcard: list}}
}

// ReadFile reads the file of a script, of at most 512 MiB.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	if info.Size() > maxFileSize {
		return nil, fmt.Errorf("load script %s: %d bytes, allowed %d", path, info.Size(), maxFileSize)
	}
	data, err := os.ReadFile(path) //nolint:gosec // G304: reading the named file is the purpose
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	return data, nil
}

// WithFallback returns a script with the replies of s and, for instances that s
// does not name, those of fallback.
func (s *Script) WithFallback(fallback *Script) *Script {
	replies := maps.Clone(fallback.replies)
	maps.Copy(replies, s.replies)
	return &Script{name: s.name, replies: replies}
}

// For returns a model that gives the instance's replies in order. In the middle
// of a conversation, such as a resumed attempt, it continues with the next reply.
// For fails if the script has no replies for the instance.
func (s *Script) For(instanceID string) (model.Model, error) {
	replies, err := s.repliesFor(instanceID)
	if err != nil {
		return nil, err
	}
	return &player{name: s.name, replies: replies}, nil
}

func (s *Script) repliesFor(instanceID string) ([]reply, error) {
	replies, ok := s.replies[instanceID]
	if !ok {
		replies, ok = s.replies[wildcard]
	}
	if !ok {
		return nil, fmt.Errorf("%s has no replies for instance %q, and none under %q; it has them for %.200q", s.name, instanceID, wildcard, s.InstanceIDs())
	}
	return replies, nil
}

// player gives one reply after the other. It uses the conversation only to count
// the replies already given.
type player struct {
	name    string
	replies []reply
	mu      sync.Mutex
	next    int
}

// Query implements model.Model.
func (m *player) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	if ctx.Err() != nil {
		return model.Reply{}, context.Cause(ctx)
	}
	r, ok := m.nextReply(messages)
	if !ok {
		return model.Reply{}, &model.Error{
			Status: model.ScriptExhausted,
			Hint:   "add replies to the script, or let one of them submit",
			Err:    fmt.Errorf("%s: %w (it has %d)", m.name, ErrExhausted, len(m.replies)),
		}
	}
	if err := wait(ctx, r.latency); err != nil {
		return model.Reply{}, err
	}
	if listener := model.DeltaListener(ctx); listener != nil {
		if reasoning := r.Message.Reasoning; reasoning != "" {
			listener(model.Delta{Reasoning: reasoning})
		}
		if text := r.Message.Content; text != "" {
			listener(model.Delta{Text: text})
		}
	}
	return r.Reply, nil
}

func (m *player) nextReply(messages []model.Message) (reply, bool) {
	given := 0
	for _, msg := range messages {
		if msg.Role == model.Assistant {
			given++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// A compacted conversation may contain fewer replies than were given.
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
