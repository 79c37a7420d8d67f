package subagents

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/internal/text"
)

// Bounds of the board. maxKeys is the number of keys; the others are in bytes.
const (
	maxKeys     = 100
	maxKey      = 100
	maxValue    = 16 << 10
	maxBoard    = 256 << 10 // of all values
	maxRecorded = 64 << 10  // of the children's values that are recorded with one call
)

// board is a key-value store that an attempt shares with its children.
type board struct {
	mu         sync.Mutex
	values     map[string]string
	unrecorded map[string]change // the children's changes that no call has recorded yet, by key
	restored   sync.Once
}

// boardDetails is recorded with a call that changes the board.
type boardDetails struct {
	Board change `json:"board"`
}

// change is one change of the board.
type change struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// By is the number of the child that set the key; 0 is the attempt itself.
	By int `json:"by,omitempty"`
	// Before is the previous value if Replaced is set.
	Replaced bool   `json:"replaced,omitempty"`
	Before   string `json:"before,omitempty"`
}

// boardTool is the tool board.
type boardTool struct{ pool *Pool }

// Spec implements tools.Tool.
func (boardTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        "board",
		Usage:       "board get [KEY]\nboard set KEY VALUE|-\nboard list",
		Description: "keeps short texts by name, for the agents that work on this task together",
		MaxOutput:   maxBoard + maxKeys*(maxKey+8),
	}
}

// Call implements tools.Tool.
func (t boardTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	if len(args.Positional) == 0 {
		return tools.Result{}, tools.Usagef("get, set or list is missing")
	}
	b := &t.pool.board
	b.restore(c.Attempt)
	verb, rest := args.Positional[0], args.Positional[1:]
	switch {
	case verb == "list" && len(rest) == 0, verb == "get" && len(rest) == 0:
		return tools.Result{Output: b.list(verb == "get")}, nil
	case verb == "get" && len(rest) == 1:
		value, ok := b.get(rest[0])
		if !ok {
			return tools.Result{}, fmt.Errorf("there is no %.100q on the board", rest[0])
		}
		return tools.Result{Output: withNewline(value)}, nil
	case verb == "set" && len(rest) >= 2:
		value, err := tools.Args{Positional: rest[1:]}.Text(c, "value", maxValue)
		if err != nil {
			return tools.Result{}, err
		}
		changed, err := b.set(rest[0], value, positionFrom(ctx).child)
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Output: fmt.Sprintf("set %s (%s)\n", changed.Key, text.Count(len(value), "byte")), Details: boardDetails{changed}}, nil
	}
	return tools.Result{}, tools.Usagef("these arguments are none of the forms")
}

func (b *board) get(key string) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.values[key]
	return v, ok
}

// list returns a line for each key, followed by the value if withValues is set.
func (b *board) list(withValues bool) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(b.values)) {
		if text.WriteString(key); withValues {
			text.WriteString(": " + strings.ReplaceAll(b.values[key], "\n", "\n  "))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

func (b *board) set(key, value string, by int) (change, error) {
	if key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\ufffd' }) {
		return change{}, tools.Usagef("%.100q is no key: up to %d bytes without spaces are", key, maxKey)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.values == nil {
		b.values, b.unrecorded = map[string]string{}, map[string]change{}
	}
	old, replaced := b.values[key]
	total := len(value) - len(old)
	for _, other := range b.values {
		total += len(other)
	}
	switch {
	case !replaced && len(b.values) >= maxKeys:
		return change{}, fmt.Errorf("the board is full: it has %d keys; set one of them", maxKeys)
	case total > maxBoard:
		return change{}, fmt.Errorf("the board is full: it would hold %d bytes, and %d are allowed", total, maxBoard)
	}
	b.values[key] = value
	if by > 0 {
		b.unrecorded[key] = change{Key: key, Value: value, By: by}
	}
	return change{Key: key, Value: value, By: by, Replaced: replaced, Before: old}, nil
}

// takeChanges returns the changes that children made since takeChanges was last
// called: the latest change of each key, in the order of the keys, up to
// maxRecorded bytes of values. The attempt records these changes with the call
// that ran the children; changes beyond the limit are never recorded. In a child, takeChanges
// returns nothing.
func (b *board) takeChanges(ctx context.Context) []change {
	if positionFrom(ctx).depth > 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []change
	sum := 0
	for _, key := range slices.Sorted(maps.Keys(b.unrecorded)) {
		if sum += len(b.unrecorded[key].Value); sum <= maxRecorded {
			all = append(all, b.unrecorded[key])
		}
	}
	clear(b.unrecorded)
	return all
}

// restore rebuilds the board of a resumed attempt from the recorded calls. Only
// the first call of restore with an attempt has an effect.
func (b *board) restore(a *agent.Attempt) {
	if a == nil {
		return
	}
	b.restored.Do(func() {
		state := a.Session().Resume
		if state == nil {
			return
		}
		for _, call := range state.ToolCalls() {
			var d struct {
				Board   *change  `json:"board"`
				Changed []change `json:"changed"`
			}
			if len(call.Details) == 0 || json.Unmarshal(call.Details, &d) != nil {
				continue
			}
			if d.Board != nil && call.Name == (boardTool{}).Spec().Name {
				d.Changed = append(d.Changed, *d.Board)
			}
			for _, c := range d.Changed {
				_, _ = b.set(c.Key, c.Value, 0) // ignore values that do not fit any more
			}
		}
	})
}
