package convert

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// readMessages reads an object with messages, or with conversations of them.
func readMessages(src source, data []byte) (*File, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, explain(err)
	}
	name := "messages"
	if _, ok := fields[name]; !ok {
		name = "conversations"
	}
	var list []json.RawMessage
	if err := json.Unmarshal(fields[name], &list); err != nil || list == nil {
		return nil, errors.New(name + ": a list is needed")
	}
	b := newBuilder(src, string(formatMessages))
	for _, id := range []string{"instance_id", "task_id", "id"} {
		if b.header.InstanceID = asString(fields[id]); b.header.InstanceID != "" {
			break
		}
	}
	b.header.ModelName = asString(fields["model"])
	b.from.Agent = asString(fields["agent"])
	b.header.Tools = readTools(fields["tools"])
	b.extra(data, name, "instance_id", "tools")
	return b.messages(list)
}

func readMessageList(src source, list []json.RawMessage) (*File, error) {
	return newBuilder(src, string(formatMessages)).messages(list)
}

func (b *builder) messages(list []json.RawMessage) (*File, error) {
	if len(list) == 0 {
		return nil, errors.New("there are no messages")
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, explain(err)
	}
	t, err := parse(data)
	if err != nil {
		return nil, err
	}
	// A fenced block is a command only where some message answers one.
	text := slices.ContainsFunc(t.Turns, func(turn trajectories.Turn) bool {
		return turn.Role == model.User && turn.Result != nil
	})
	c := conversation{b: b, text: text}
	if err := c.read(t.Turns); err != nil {
		return nil, err
	}
	b.end(ending{status: c.exit.Status, submission: c.exit.Submission})
	return b.done()
}

// readTools takes the definitions of functions, as OpenAI nests them.
func readTools(raw json.RawMessage) []model.Definition {
	var list []struct {
		Function *model.Definition `json:"function"`
		model.Definition
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var tools []model.Definition
	for _, t := range list {
		switch {
		case t.Function != nil && t.Function.Name != "":
			tools = append(tools, *t.Function)
		case t.Name != "":
			tools = append(tools, t.Definition)
		}
	}
	return tools
}

// details are the fields of a message that trajectories.Turn does not read.
type details struct {
	Object  string          `json:"object"`
	Kept    json.RawMessage `json:"kept"`
	Content json.RawMessage `json:"content"`
	Extra   struct {
		Actions []struct {
			Command string `json:"command"`
		} `json:"actions"`
		RawOutput     json.RawMessage `json:"raw_output"`
		ReturnCode    json.RawMessage `json:"returncode"`
		TimedOut      bool            `json:"timed_out"` // as mini derives it
		Cause         *string         `json:"cause"`     // likewise
		Exception     string          `json:"exception_type"`
		Response      json.RawMessage `json:"response"`
		Model         string          `json:"model"`
		Cost          *float64        `json:"cost"`
		ModelResponse json.RawMessage `json:"model_response"`
		Status        string          `json:"exit_status"`
		Submission    string          `json:"submission"`
	} `json:"extra"`
}

// Fields of messages that have a place in a journal, or that it can do without.
var (
	knownFields = []string{
		"role", "content", "extra", "tool_calls", "tool_call_id", "timestamp", "reasoning_content", "kept", "type",
		"name", "function_call", "refusal", "annotations", "audio", "object", "output", "call_id", "cache_control",
	}
	knownExtra = []string{
		"actions", "response", "model", "cost", "model_response", "exit_status", "submission", "raw_output", "returncode",
		"timestamp", "exception_info", "exception", "exception_type", "exception_str", "traceback", "interrupt_type", "n_actions", "timed_out", "cause",
	}
)

// unread notes the fields that say something and are read by nobody.
func (b *builder) unread(raw json.RawMessage, reply bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return
	}
	var extra map[string]json.RawMessage
	_ = json.Unmarshal(fields["extra"], &extra) // there may be none
	whole := reply && (len(extra["response"]) > 0 || asString(fields["object"]) == "response")
	if !whole { // else the call keeps it all
		b.unreadOf(fields, knownFields, "the field %q of a message")
	}
	b.unreadOf(extra, knownExtra, "the field \"extra.%s\" of a message")
}

func (b *builder) unreadOf(fields map[string]json.RawMessage, known []string, text string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(known, name) || saysNothing(fields[name]) {
			continue
		}
		if len(name) > 40 {
			name = name[:40] + "..."
		}
		text := strings.NewReplacer("%q", `"`+printable(name)+`"`, "%s", printable(name)).Replace(text)
		b.lose(text, 1)
	}
}

// printable keeps a name from a file to one line of letters.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r > 0x7e {
			return '?'
		}
		return r
	}, name)
}

// saysNothing: null, false, an empty value, or only such things within.
func saysNothing(raw json.RawMessage) bool {
	var v any
	return len(raw) == 0 || json.Unmarshal(raw, &v) == nil && empty(v)
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !empty(e) })
	case map[string]any:
		for _, e := range v {
			if !empty(e) {
				return false
			}
		}
		return true
	}
	return false
}
