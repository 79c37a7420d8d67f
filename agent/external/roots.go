package external

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/bridge"
	"github.com/minibench/mini/model"
)

const (
	maxRoots    = 8 << 20  // bytes of the requests that may turn out to be subagents
	maxSpawns   = 4 << 20  // bytes of arguments that may be tasks of subagents
	maxSpawn    = 64 << 10 // bytes of one of them
	distinctive = 40       // bytes of a text that no other conversation has by chance
)

// identities are the headers with which agents mark requests of subagents: a request with
// the header name, of this value unless empty, is of the subagent that the header id names.
var identities = []struct{ name, value, id string }{
	{"x-openai-subagent", "collab_spawn", "thread-id"}, // Codex
	{"x-claude-code-agent-id", "", "x-claude-code-agent-id"},
}

// root is the first request of a conversation that has no place yet. If a request
// continues it, it is a subagent, else it was a side call.
type root struct {
	exchange bridge.Exchange // without the request's and the reply's raw form
	keys     []key           // of the messages and the reply
	size     int
}

// spawn is a text in the arguments of a call, which may be the task of a subagent.
type spawn struct {
	thread           *thread
	call, tool, text string
	used             bool
}

// threadOf returns the thread of an exchange, nil for a side call. The evidence is, in this
// order: headers, equal messages, a call with the task, and similar messages.
func (r *recorder) threadOf(x bridge.Exchange) (*thread, error) {
	keys := keysOf(x.Messages)
	// Without tools where the main thread has some, it is a call for a title or the like.
	lacksTools := !x.HasTools && (r.tools || r.main.offersTools)
	if id, ok := identityOf(x.Headers); ok {
		i := slices.IndexFunc(r.children, func(c *child) bool { return c.identity == id })
		switch {
		case i < 0:
			return r.newChild(x, id, r.spawnOf(x, false), false)
		case lacksTools && !r.children[i].continues(x.Messages):
			return nil, nil //nolint:nilnil // a side call of the subagent
		}
		return &r.children[i].thread, nil
	}
	if t := r.threadWith(keys); t != nil && (t != &r.main || x.HasTools || !r.tools) {
		return t, nil
	}
	if s := r.spawnOf(x, lacksTools); s != nil {
		return r.newChild(x, "", s, false)
	}
	switch {
	case lacksTools:
		return nil, nil //nolint:nilnil // a side call
	case r.isMain(x):
		r.main.offersTools = r.main.offersTools || x.HasTools
		return &r.main, nil
	}
	isContinued := slices.ContainsFunc(x.Messages, func(m model.Message) bool { return m.Role == model.Assistant })
	for _, c := range r.children {
		if isContinued && c.knowsMost(keys) || c.isQuoted(x.Messages) {
			return &c.thread, nil
		}
	}
	return r.promoteRoot(keys)
}

// isMain reports whether an exchange is of the main thread, which offers tools or begins
// with the task.
func (r *recorder) isMain(x bridge.Exchange) bool {
	if !r.main.isEmpty() {
		return r.main.continues(x.Messages)
	}
	return x.HasTools || slices.ContainsFunc(x.Messages, func(m model.Message) bool { return m.Role == model.User && contains(m.Content, r.task) })
}

func identityOf(headers map[string]string) (id string, ok bool) {
	for _, i := range identities {
		if value := headers[i.name]; value != "" && (i.value == "" || i.value == value) && headers[i.id] != "" {
			return headers[i.id], true
		}
	}
	return "", false
}

// threadWith returns the first thread whose messages a request begins with, nil if there is
// none. Threads with equal messages are interchangeable.
func (r *recorder) threadWith(keys []key) *thread {
	if r.main.isPrefix(keys) {
		return &r.main
	}
	for _, c := range r.children {
		if c.isPrefix(keys) {
			return &c.thread
		}
	}
	return nil
}

// spawnOf returns the call that has the task of a new conversation in its arguments. If
// exact is set, a message must be equal to the task.
func (r *recorder) spawnOf(x bridge.Exchange, exact bool) (best *spawn) {
	score := 0
	for _, m := range x.Messages {
		text := normalize(m.Content)
		switch {
		case m.Role == model.Assistant:
			return nil // the conversation is not new
		case m.Role != model.User || text == "":
			continue
		}
		for i := range r.spawns {
			s := &r.spawns[i]
			points := 0
			switch {
			case text == s.text:
				points = 4
			case exact:
			case len(s.text) >= distinctive && strings.Contains(text, s.text), len(text) >= distinctive && strings.Contains(s.text, text):
				points = 2
			}
			if points > 0 && s.used {
				points--
			}
			if points > score {
				best, score = s, points
			}
		}
	}
	return best
}

// keepSpawns remembers the texts in the arguments of calls.
func (r *recorder) keepSpawns(t *thread, calls []model.ToolCall) {
	for _, c := range calls {
		var arguments any
		_ = json.Unmarshal([]byte(c.Arguments), &arguments) // other arguments have no texts
		eachText(arguments, func(s string) {
			if s = normalize(s); s != "" && len(s) <= maxSpawn {
				r.spawns = append(r.spawns, spawn{thread: t, call: c.ID, tool: c.Name, text: s})
			}
		})
	}
	r.spawns = newest(r.spawns, maxSpawns, func(s spawn) int { return len(s.text) })
}

// eachText calls f with all strings in a JSON value.
func eachText(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, e := range v {
			eachText(e, f)
		}
	case map[string]any:
		for _, e := range v {
			eachText(e, f)
		}
	}
}

// newest drops the first elements until the others have at most limit bytes.
func newest[T any](list []T, limit int, size func(T) int) []T {
	sum := 0
	for i := len(list) - 1; i >= 0; i-- {
		const overhead = 100 // bytes of an element besides its text
		if sum += size(list[i]) + overhead; sum > limit {
			return slices.Clone(list[i+1:])
		}
	}
	return list
}

// keepRoot remembers a side call that a later request may continue.
func (r *recorder) keepRoot(x bridge.Exchange) {
	if x.Err != nil || !x.HasTools && (r.tools || r.main.offersTools) {
		return
	}
	kept := root{exchange: x, keys: append(keysOf(x.Messages), keyOf(x.Reply.Message)), size: len(x.Request.Bytes()) + len(x.Reply.Raw) + sizeOf(x.Reply.Tokens)}
	kept.exchange.Request, kept.exchange.Reply.Raw = nil, nil
	r.roots = newest(append(r.roots, kept), maxRoots, func(r root) int { return r.size })
}

// sizeOf returns about how many bytes tokens have.
func sizeOf(t *model.Tokens) int {
	if t == nil {
		return 0
	}
	const sampled = 40 // bytes of a sampled token, with its log probability and text
	return 4*len(t.Prompt) + sampled*len(t.Completion)
}

// promoteRoot makes a subagent of the side call that a request continues, if there is one.
func (r *recorder) promoteRoot(keys []key) (*thread, error) {
	for i, kept := range slices.Backward(r.roots) {
		if len(keys) <= len(kept.keys) || !slices.Equal(keys[:len(kept.keys)], kept.keys) {
			continue
		}
		t, err := r.newChild(kept.exchange, "", nil, true)
		if t == nil {
			return nil, err
		}
		r.roots = slices.Delete(r.roots, i, i+1)
		return t, r.recordStep(t, kept.exchange) // it was charged as a side call
	}
	return nil, nil //nolint:nilnil // a side call
}
