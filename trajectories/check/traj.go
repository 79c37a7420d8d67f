package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/minibench/mini/trajectories"
)

// traj checks what mini-swe-agent writes, release 1 or 2, or a bare list of
// messages.
func (r *Report) traj(data []byte) {
	r.Format = "mini-swe-agent"
	if !utf8.Valid(data) {
		r.problem(0, "", "not UTF-8")
		return
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var root any
	if !json.Valid(data) { // all of it, not its first value
		err := json.Unmarshal(data, new(json.RawMessage))
		r.problem(0, "", "not JSON: %s", syntaxAt(data, err))
		return
	}
	if err := dec.Decode(&root); err != nil {
		r.problem(0, "", "not JSON: %s", syntaxAt(data, err))
		return
	}
	if list, ok := root.([]any); ok {
		r.Format = "messages"
		t := turns{Report: r}
		t.all("messages", list)
		return
	}
	o := node{r, "", root}
	format := o.want("trajectory_format", isString)
	name, _ := format.v.(string)
	switch name {
	case trajectories.FormatV1, trajectories.FormatV2:
		r.Format = name
	case "":
	default:
		r.problem(0, "trajectory_format", "%.60q is not known (known are %s and %s)", name, trajectories.FormatV1, trajectories.FormatV2)
		return
	}
	o.may("instance_id", isString)
	exit := r.info(o.want("info", isObject))
	list, _ := o.want("messages", isList).v.([]any)
	t := turns{Report: r, second: name == trajectories.FormatV2}
	t.all("messages", list)
	switch {
	case !t.second || list == nil:
	case t.exit == nil:
		r.note(0, "messages", "there is no message of the role exit: the attempt has not ended")
	case *t.exit != exit:
		r.problem(0, "info.exit_status", "%.60q, and the exit message says %.60q", exit, *t.exit)
	}
}

// info checks the part with the totals, and returns the exit status.
func (r *Report) info(o node) string {
	stats := o.want("model_stats", isObject)
	known, _ := stats.v.(map[string]any)
	if cost, there := known["instance_cost"]; there && cost == nil { // as mini has it
		r.note(0, stats.path+".instance_cost", "nobody knows what it cost")
	} else {
		stats.want("instance_cost", isNumber)
	}
	stats.want("api_calls", isWhole)
	config := o.want("config", isObject)
	for _, part := range []string{"agent", "model", "environment"} {
		config.want(part, isObject)
		config.may(part+"_type", isString)
	}
	o.want("mini_version", isString)
	o.may("submission", isString)
	o.may("exception_str", isString)
	o.may("traceback", isString)
	status, _ := o.may("exit_status", isString).v.(string)
	return status
}

// turns are the messages of a file.
type turns struct {
	*Report
	second bool // of release 2
	calls  map[string]bool
	exit   *string // the status
}

func (t *turns) all(path string, list []any) {
	if len(list) == 0 {
		t.problem(0, path, "at least one message is needed")
	}
	for i, v := range list {
		at := fmt.Sprintf("%s.%d", path, i)
		if t.exit != nil {
			t.problem(0, at, "the message of the role exit is the last one, and this comes after it")
			return
		}
		t.turn(node{t.Report, at, v})
		if t.full {
			return
		}
	}
}

func (t *turns) turn(m node) {
	fields, ok := m.v.(map[string]any)
	if !ok {
		t.problem(0, m.path, "an object is needed, this is %s", wordFor(m.v))
		return
	}
	m.may("timestamp", isNumber)
	extra := m.may("extra", isObject)
	if fields["role"] == nil && (fields["object"] == "response" || fields["type"] == "function_call_output") {
		t.extra("", extra) // as the Responses API has it
		return
	}
	role, _ := m.want("role", isString).v.(string)
	if role != "" && !slices.Contains([]string{"system", "developer", "user", "assistant", "tool", "exit"}, role) {
		t.problem(0, m.path+".role", "one of system, user, assistant, tool, exit is needed, got %.60q", role)
	}
	t.content(m, fields, role)
	m.may("reasoning_content", isString)
	if role == "assistant" {
		t.toolCalls(m.may("tool_calls", isList))
	}
	if id, _ := m.may("tool_call_id", isString).v.(string); role == "tool" {
		switch answered, ok := t.calls[id]; {
		case id == "":
			t.problem(0, m.path+".tool_call_id", "required field is missing")
		case !ok:
			t.problem(0, m.path+".tool_call_id", "%.60q is no call of the assistant's last message", id)
		case answered:
			t.problem(0, m.path+".tool_call_id", "%.60q is answered twice", id)
		default:
			t.calls[id] = true
		}
	}
	t.extra(role, extra)
}

func (t *turns) content(m node, fields map[string]any, role string) {
	content, ok := fields["content"]
	switch c := content.(type) {
	case string:
	case []any:
		for i, p := range c {
			part := node{t.Report, fmt.Sprintf("%s.content.%d", m.path, i), p}
			part.want("type", isString)
			part.may("text", isString)
		}
	case nil:
		if role != "assistant" && !ok {
			t.problem(0, m.path+".content", "required field is missing")
		} else if role != "assistant" {
			t.problem(0, m.path+".content", "a string or a list of parts is needed, this is null")
		}
	default:
		t.problem(0, m.path+".content", "a string or a list of parts is needed, this is %s", wordFor(c))
	}
}

func (t *turns) toolCalls(list node) {
	t.calls = map[string]bool{}
	all, _ := list.v.([]any)
	for i, v := range all {
		call := node{t.Report, fmt.Sprintf("%s.%d", list.path, i), v}
		id, _ := call.want("id", isString).v.(string)
		f := call.want("function", isObject)
		f.want("name", isString)
		if a := f.child("arguments"); a.v == nil {
			f.want("arguments", isString)
		} else if !isString.is(a.v) && !isObject.is(a.v) {
			t.problem(0, a.path, "a string is needed, this is %s", wordFor(a.v))
		}
		if _, ok := t.calls[id]; ok {
			t.problem(0, call.path+".id", "%.60q is there twice", id)
		}
		t.calls[id] = false
	}
}

// extra checks what release 2 puts beside its messages.
func (t *turns) extra(role string, x node) {
	if role == "exit" {
		status, _ := x.may("exit_status", isString).v.(string)
		x.may("submission", isString)
		t.exit = &status
		return
	}
	x.may("timestamp", isNumber)
	x.may("cost", isNumber)
	x.may("raw_output", isString)
	x.may("returncode", isWhole)
	x.may("interrupt_type", isString)
	x.may("n_actions", isWhole)
	if !t.second {
		return
	}
	actions := x.may("actions", isList)
	all, _ := actions.v.([]any)
	for i, a := range all {
		n := node{t.Report, fmt.Sprintf("%s.%d", actions.path, i), a}
		n.want("command", isString)
		n.may("tool_call_id", isString)
	}
}

// node is a value, and where it stands.
type node struct {
	r    *Report
	path string
	v    any
}

// sort is a kind of value.
type sort struct {
	name string
	is   func(any) bool
}

var (
	isString = sort{"a string", func(v any) bool { _, ok := v.(string); return ok }}
	isList   = sort{"a list", func(v any) bool { _, ok := v.([]any); return ok }}
	isObject = sort{"an object", func(v any) bool { _, ok := v.(map[string]any); return ok }}
	isNumber = sort{"a number", func(v any) bool { _, ok := v.(json.Number); return ok }}
	isWhole  = sort{"a whole number", func(v any) bool {
		n, ok := v.(json.Number)
		if !ok {
			return false
		}
		f, err := strconv.ParseFloat(string(n), 64)
		return err == nil && f == math.Trunc(f)
	}}
)

// child is a field of an object; its value is nil where it is missing.
func (n node) child(key string) node {
	o, _ := n.v.(map[string]any)
	return node{n.r, join(n.path, key), o[key]}
}

// want is a field that must be there; nothing more is said of an object that is
// none itself.
func (n node) want(key string, s sort) node {
	c := n.child(key)
	if o, ok := n.v.(map[string]any); ok {
		if _, there := o[key]; !there {
			n.r.problem(0, c.path, "required field is missing")
			return node{n.r, c.path, nil}
		}
		if c.v == nil {
			n.r.problem(0, c.path, "%s is needed, this is null", s.name)
		}
	} else if n.path == "" || n.v != nil {
		n.r.problem(0, n.path, "an object is needed, this is %s", wordFor(n.v))
	}
	return n.fits(c, s)
}

// may is a field that may be missing, or null.
func (n node) may(key string, s sort) node { return n.fits(n.child(key), s) }

func (n node) fits(c node, s sort) node {
	if c.v != nil && !s.is(c.v) {
		n.r.problem(0, c.path, "%s is needed, this is %s", s.name, wordFor(c.v))
		c.v = nil
	}
	return c
}

func wordFor(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case bool:
		return "true or false"
	}
	return "a number"
}

// syntaxAt says on which line a mistake is.
func syntaxAt(data []byte, err error) string {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := min(max(0, int(s.Offset)), len(data))
		return fmt.Sprintf("line %d: %v", 1+bytes.Count(data[:at], []byte("\n")), err)
	}
	return plain(err)
}
