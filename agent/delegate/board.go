package delegate

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
)

// Bounds of the board: the number of keys, and bytes.
const (
	maxKeys  = 100
	maxKey   = 100
	maxValue = 16 << 10
	maxBoard = 256 << 10 // of all values together
	maxLog   = 200       // changes of children that are kept for the call that made them
	maxNoted = 64 << 10  // of those that are recorded with a call, together
)

// board is a small memory that an attempt and its children share.
type board struct {
	mu     sync.Mutex
	values map[string]string
	log    []change // of children, which are recorded with the call that made them
	logged int      // ever
	once   sync.Once
}

// noted is a change of the board, in the details of the call that made it.
type noted struct {
	Board change `json:"board"`
}

type change struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// By is the child that set it; 0 is the attempt itself.
	By int `json:"by,omitempty"`
	// Before is what was there, where Replaced.
	Replaced bool   `json:"replaced,omitempty"`
	Before   string `json:"before,omitempty"`
}

// boardTool is the board.
type boardTool struct{ f *Family }

// Spec implements tools.Tool.
func (boardTool) Spec() tools.Spec {
	return tools.Spec{
		Name:      "board",
		Usage:     "board get [KEY]\nboard set KEY VALUE|-\nboard list",
		About:     "keeps short texts by name, for the agents that work on this task together",
		MaxOutput: maxBoard + maxKeys*(maxKey+8),
	}
}

// Call implements tools.Tool.
func (t boardTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	if len(args.Rest) == 0 {
		return tools.Result{}, tools.Usagef("get, set or list is missing")
	}
	b := &t.f.board
	b.recall(c.Attempt)
	verb, rest := args.Rest[0], args.Rest[1:]
	switch {
	case verb == "list" && len(rest) == 0, verb == "get" && len(rest) == 0:
		return tools.Result{Output: b.list(verb == "get")}, nil
	case verb == "get" && len(rest) == 1:
		value, ok := b.get(rest[0])
		if !ok {
			return tools.Result{}, fmt.Errorf("there is no %.100q on the board", rest[0])
		}
		return tools.Result{Output: endLine(value)}, nil
	case verb == "set" && len(rest) >= 2:
		text := tools.Args{Rest: rest[1:]}
		value, err := text.Text(c, "value", maxValue)
		if err != nil {
			return tools.Result{}, err
		}
		did, err := b.set(rest[0], value, lineageOf(ctx).child)
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Output: fmt.Sprintf("set %s (%s)\n", did.Key, count(len(value), "byte")), Details: noted{did}}, nil
	}
	return tools.Result{}, tools.Usagef("these arguments are none of the forms")
}

func (b *board) get(key string) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.values[key]
	return v, ok
}

// list has a line for each key, with what is there where all is asked for.
func (b *board) list(all bool) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var text strings.Builder
	for _, k := range slices.Sorted(maps.Keys(b.values)) {
		if text.WriteString(k); all {
			text.WriteString(": " + strings.ReplaceAll(b.values[k], "\n", "\n  "))
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
		b.values = map[string]string{}
	}
	old, replaced := b.values[key]
	sum := len(value) - len(old)
	for _, v := range b.values {
		sum += len(v)
	}
	switch {
	case !replaced && len(b.values) >= maxKeys:
		return change{}, fmt.Errorf("the board is full: it has %d keys; set one of them", maxKeys)
	case sum > maxBoard:
		return change{}, fmt.Errorf("the board is full: it would hold %d bytes, and %d are allowed", sum, maxBoard)
	}
	b.values[key] = value
	if by > 0 {
		b.log = append(b.log, change{Key: key, Value: value, By: by})
		b.log = b.log[max(0, len(b.log)-maxLog):]
		b.logged++
	}
	return change{Key: key, Value: value, By: by, Replaced: replaced, Before: old}, nil
}

// since are the changes of children after so many; the last one of each key.
func (b *board) since(logged int) []change {
	b.mu.Lock()
	defer b.mu.Unlock()
	newest := map[string]change{}
	for _, c := range b.log[max(0, len(b.log)-(b.logged-logged)):] {
		newest[c.Key] = c
	}
	var all []change
	sum := 0
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if sum += len(newest[key].Value); sum <= maxNoted {
			all = append(all, newest[key])
		}
	}
	return all
}

func (b *board) mark() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.logged
}

// recall makes the board what it was, where the attempt goes on from an earlier
// session: by the calls that are on record.
func (b *board) recall(a *agent.Attempt) {
	if a == nil {
		return
	}
	b.once.Do(func() {
		past := a.Session().Past
		if past == nil {
			return
		}
		for _, call := range past.Asked {
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
				_, _ = b.set(c.Key, c.Value, 0) // what does not fit was not there
			}
		}
	})
}
