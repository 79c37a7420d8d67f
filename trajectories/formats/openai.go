package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
)

// readMessages reads an object with a list of messages: a row of a dataset may also have
// the exit status and the patch.
func readMessages(src source, data []byte) (*File, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, explainJSON(err)
	}
	name := messagesField(fields)
	var list []json.RawMessage
	if err := json.Unmarshal(fields[name], &list); err != nil || list == nil {
		return nil, errors.New(name + ": not a list")
	}
	b := newBuilder(src, string(formatMessages))
	for _, id := range []string{"instance_id", "task_id", "id"} {
		if b.header.InstanceID = asString(fields[id]); b.header.InstanceID != "" {
			break
		}
	}
	b.header.ModelName = asString(fields["model"])
	b.imported.Agent = asString(fields["agent"])
	b.header.Tools = readTools(fields["tools"])
	b.setExtra(data, name, "instance_id", "tools")
	patch := cmp.Or(asString(fields["model_patch"]), asString(fields["generated_patch"]))
	return b.messages(list, ending{status: asString(fields["exit_status"]), submission: patch})
}

// messages adds the records of all messages and returns the file. e is the ending if the
// messages have none.
func (b *builder) messages(list []json.RawMessage, e ending) (*File, error) {
	if len(list) == 0 {
		return nil, errors.New("no messages")
	}
	turns, err := parseTurns(list, defaultActions())
	if err != nil {
		return nil, err
	}
	// Code blocks are commands only if a user message has the result of a command.
	textCommands := slices.ContainsFunc(turns, func(turn turn) bool {
		return turn.Role == model.User && turn.Result != nil
	})
	c := conversation{b: b, textCommands: textCommands}
	c.read(turns)
	if c.exit.Status != "" {
		e = ending{status: c.exit.Status, submission: c.exit.Submission}
	}
	b.end(e)
	return b.file()
}

// readTools reads tool definitions in OpenAI's format.
func readTools(raw json.RawMessage) []model.ToolDefinition {
	var list []struct {
		Function *model.ToolDefinition `json:"function"`
		model.ToolDefinition
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var tools []model.ToolDefinition
	for _, t := range list {
		switch {
		case t.Function != nil && t.Function.Name != "":
			tools = append(tools, *t.Function)
		case t.Name != "":
			tools = append(tools, t.ToolDefinition)
		}
	}
	return tools
}

// Fields that addUnreadLosses does not report: those that a journal represents or does not
// need. knownFields are fields of messages, knownExtra of their extra data.
var (
	knownFields = []string{
		"role", "content", "from", "value", "text", "system_prompt", "extra", "tool_calls", "tool_call_id", "timestamp", "reasoning_content", "kept", "type",
		"name", "function_call", "refusal", "annotations", "audio", "object", "output", "call_id", "cache_control",
	}
	knownExtra = []string{
		"actions", "response", "model", "cost", "model_response", "exit_status", "submission", "raw_output", "returncode",
		"timestamp", "exception_info", "exception", "exception_type", "exception_str", "traceback", "interrupt_type", "n_actions", "timed_out", "cause",
	}
)

// addUnreadLosses adds a loss for each field of a message that is not empty and that
// neither the package reads nor Call.Raw contains.
func (b *builder) addUnreadLosses(raw json.RawMessage, isReply bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return
	}
	var extra map[string]json.RawMessage
	_ = json.Unmarshal(fields["extra"], &extra) // extra is optional
	inCall := isReply && (len(extra["response"]) > 0 || asString(fields["object"]) == "response")
	if !inCall { // Call.Raw contains the message otherwise
		b.addUnreadFields(fields, knownFields, "the field \"%s\" of a message")
	}
	b.addUnreadFields(extra, knownExtra, "the field \"extra.%s\" of a message")
}

// addUnreadFields adds a loss for each field that is not empty and not known. text is a
// format of the name of the field.
func (b *builder) addUnreadFields(fields map[string]json.RawMessage, known []string, text string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(known, name) || isEmpty(fields[name]) {
			continue
		}
		b.addLoss(fmt.Sprintf(text, printable(name)), 1)
	}
}

// printable shortens a name, and replaces characters that are not printable ASCII by "?".
func printable(name string) string {
	if len(name) > 40 {
		name = name[:40] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r > 0x7e {
			return '?'
		}
		return r
	}, name)
}

// isEmpty reports whether a JSON value is missing, null, false, empty, or contains only
// such values.
func isEmpty(raw json.RawMessage) bool {
	var v any
	return len(raw) == 0 || json.Unmarshal(raw, &v) == nil && isEmptyValue(v)
}

func isEmptyValue(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !isEmptyValue(e) })
	case map[string]any:
		for _, e := range v {
			if !isEmptyValue(e) {
				return false
			}
		}
		return true
	}
	return false
}
