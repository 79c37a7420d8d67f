package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/model/transport"
)

// accumulator assembles the chunks of a stream into one chat.completion object,
// including unknown fields.
type accumulator struct {
	whole  map[string]any
	deltas *transport.DeltaWriter // receives the texts as they arrive
	// reasoningField is the field that carries the thinking. Some servers send
	// the thinking twice, in two fields.
	reasoningField string
}

// add merges the next chunk.
func (a *accumulator) add(event []byte) error {
	d := json.NewDecoder(bytes.NewReader(event))
	d.UseNumber()
	var chunk map[string]any
	if err := d.Decode(&chunk); err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	choices, _ := chunk["choices"].([]any)
	for _, c := range choices { // turn each delta into a partial message
		choice, ok := c.(map[string]any)
		if !ok {
			continue
		}
		if choice["delta"] != nil {
			choice["message"] = choice["delta"]
			delete(choice, "delta")
		}
		if choice["index"] == nil {
			choice["index"] = json.Number("0")
		}
		if part, ok := choice["message"].(map[string]any); ok && choice["index"] == json.Number("0") {
			a.writeDelta(part)
		}
	}
	if chunk["object"] != nil {
		chunk["object"] = "chat.completion"
	}
	if a.whole == nil {
		a.whole = map[string]any{}
	}
	if err := transport.CheckToolCalls(countCalls(chunk)); err != nil {
		return err // before it is merged: the time grows with the square
	}
	mergeObject(a.whole, chunk)
	return transport.CheckToolCalls(countCalls(a.whole))
}

// countCalls returns the number of choices, of tool calls or of other parts with an index,
// whichever is the largest.
func countCalls(completion map[string]any) int {
	choices, _ := completion["choices"].([]any)
	most := len(choices)
	for _, c := range choices {
		choice, _ := c.(map[string]any)
		message, _ := choice["message"].(map[string]any)
		for name, value := range message {
			list, _ := value.([]any)
			if len(list) == 0 {
				continue
			}
			last, _ := list[len(list)-1].(map[string]any)
			if name == "tool_calls" || last["index"] != nil {
				most = max(most, len(list))
			}
		}
	}
	return most
}

// writeDelta sends the texts of a partial message to the delta writer.
func (a *accumulator) writeDelta(part map[string]any) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		text, _ := part[name].(string)
		if text != "" && (a.reasoningField == "" || a.reasoningField == name) {
			a.reasoningField = name
			a.deltas.Reasoning(text)
		}
	}
	switch content := part["content"].(type) {
	case string:
		a.deltas.Text(content)
	case []any: // Mistral
		a.deltas.Text(textOf(content))
	}
}

// json returns the assembled object, or nil if there were no chunks.
func (a *accumulator) json() ([]byte, error) {
	if a.whole == nil {
		return nil, nil
	}
	b, err := json.Marshal(a.whole)
	if err != nil {
		return nil, fmt.Errorf("assemble stream: %w", err)
	}
	return b, nil
}

// partialJSON returns the object assembled so far without its messages, or nil if no chunk
// has arrived.
func (a *accumulator) partialJSON() []byte {
	if a.whole == nil {
		return nil
	}
	choices, _ := a.whole["choices"].([]any)
	for _, c := range choices {
		if choice, ok := c.(map[string]any); ok {
			delete(choice, "message")
		}
	}
	b, _ := a.json() // cannot fail: all values came from JSON
	return b
}

// isConcatenated reports whether the parts of a string field are joined. In other
// fields a new string, unless empty, replaces the old one: many servers repeat these
// fields in each chunk.
func isConcatenated(name string) bool {
	switch name {
	case "content", "reasoning", "reasoning_content", "refusal", "arguments", "text", "summary", "data":
		return true
	}
	return false
}

// stringBuffer joins the parts of a string in linear time.
type stringBuffer struct{ strings.Builder }

// MarshalJSON implements json.Marshaler.
func (b *stringBuffer) MarshalJSON() ([]byte, error) { return json.Marshal(b.String()) }

// mergeObject merges the fields of from, a part of an object, into the object.
func mergeObject(into, from map[string]any) {
	for name, value := range from {
		switch value := value.(type) {
		case nil:
			if _, ok := into[name]; !ok {
				into[name] = nil
			}
		case string:
			mergeString(into, name, value)
		case map[string]any:
			object, ok := into[name].(map[string]any)
			if !ok {
				object = map[string]any{}
				into[name] = object
			}
			mergeObject(object, value)
		case []any:
			list, _ := into[name].([]any)
			into[name] = mergeList(name, list, value)
		default:
			into[name] = value
		}
	}
}

func mergeString(into map[string]any, name, value string) {
	if !isConcatenated(name) {
		if old, _ := into[name].(string); value != "" || old == "" {
			into[name] = value
		}
		return
	}
	if value == "" && into[name] != nil {
		return // arguments that came as an object stay
	}
	buffer, ok := into[name].(*stringBuffer)
	if !ok || name == "arguments" && buffer.String() == "{}" { // the start of a call, not yet its arguments
		buffer = &stringBuffer{}
		into[name] = buffer
	}
	buffer.WriteString(value)
}

// mergeList merges objects that continue an earlier one into it and appends all other
// items.
func mergeList(name string, list, from []any) []any {
	for _, item := range from {
		object, ok := item.(map[string]any)
		if !ok {
			list = append(list, item)
			continue
		}
		find := findPart
		if name == "tool_calls" {
			find = findCall
		}
		earlier := find(list, object)
		if earlier == nil {
			earlier = map[string]any{}
			list = append(list, earlier)
		}
		mergeObject(earlier, object)
	}
	return list
}

// findPart returns the object in list that part continues: the newest with the
// same index. Parts of thinking with the same index but another type belong to another
// object.
func findPart(list []any, part map[string]any) map[string]any {
	index := textField(part, "index")
	if index == "" {
		return nil
	}
	for _, item := range slices.Backward(list) {
		object, ok := item.(map[string]any)
		if ok && index == textField(object, "index") && !differ(object["type"], part["type"]) {
			return object
		}
	}
	return nil
}

// findCall returns the call in list that part continues, or nil if part starts a call.
// Servers number and name the parts of calls in many ways: some give every call the same
// index, some give none, some count the parts, and some repeat the id and the name.
func findCall(list []any, part map[string]any) map[string]any {
	var last, byIndex, byID map[string]any
	id, index, name := textField(part, "id"), textField(part, "index"), callName(part)
	for _, item := range list {
		call, ok := item.(map[string]any)
		if !ok {
			continue
		}
		last = call
		if index != "" && index == textField(call, "index") {
			byIndex = call
		}
		if id != "" && id == textField(call, "id") {
			byID = call
		}
	}
	call := byIndex
	switch {
	case byID != nil:
		call = byID
	case byIndex == nil && (name == "" || index == ""):
		call = last
	}
	if call == nil || name == "" {
		return call // a part without a name starts no call
	}
	arguments := callArguments(call)
	switch {
	case arguments != "" && name == callName(call) && !isComplete(arguments):
		return call
	case arguments == "" && (byID != nil || id == "" || textField(call, "id") == ""):
		return call
	case byID != nil && callArguments(part) == "":
		return call
	case byID != nil && callArguments(part) == arguments:
		delete(part, "function") // the whole call again
		return call
	}
	return nil
}

// isComplete reports whether arguments are complete.
func isComplete(arguments string) bool {
	return strings.HasSuffix(strings.TrimRight(arguments, " \t\r\n"), "}") && json.Valid([]byte(arguments))
}

func callName(call map[string]any) string {
	function, _ := call["function"].(map[string]any)
	return textField(function, "name")
}

// callArguments returns the arguments as text; that of an object is its JSON.
func callArguments(call map[string]any) string {
	function, _ := call["function"].(map[string]any)
	if object, ok := function["arguments"].(map[string]any); ok {
		text, _ := json.Marshal(object) // cannot fail: all values came from JSON
		return string(text)
	}
	return textField(function, "arguments")
}

// textField returns a field that is a string or a number as text; "" for other types.
func textField(object map[string]any, name string) string {
	switch value := object[name].(type) {
	case string:
		return value
	case json.Number:
		return value.String()
	case *stringBuffer:
		return value.String()
	}
	return ""
}

// differ reports whether a and b are both non-empty strings and not equal.
func differ(a, b any) bool {
	x, _ := a.(string)
	y, _ := b.(string)
	return x != "" && y != "" && x != y
}
