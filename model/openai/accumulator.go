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
	mergeObject(a.whole, chunk)
	return nil
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

// partialJSON returns the object assembled so far, or nil if no chunk has arrived.
func (a *accumulator) partialJSON() []byte {
	if a.whole == nil {
		return nil
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
			into[name] = mergeList(list, value)
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
	buffer, ok := into[name].(*stringBuffer)
	if !ok {
		buffer = &stringBuffer{}
		into[name] = buffer
	}
	buffer.WriteString(value)
}

// mergeList merges objects with the same index and appends all other items.
func mergeList(list, from []any) []any {
	for _, item := range from {
		object, ok := item.(map[string]any)
		if !ok {
			list = append(list, item)
			continue
		}
		earlier := findPart(list, object)
		if earlier == nil {
			earlier = map[string]any{}
			list = append(list, earlier)
		}
		mergeObject(earlier, object)
	}
	return list
}

// findPart returns the object in list that part continues: the newest with the
// same index. Some servers give every tool call the same index; then a new id
// and name start a new call. Parts of thinking with the same index but another type
// belong to another object.
func findPart(list []any, part map[string]any) map[string]any {
	n, ok := part["index"].(json.Number)
	if !ok {
		return nil
	}
	for _, item := range slices.Backward(list) {
		if object, ok := item.(map[string]any); ok && object["index"] == n {
			if startsCall(part) && object["id"] != nil && object["id"] != part["id"] {
				return nil
			}
			if differ(object["type"], part["type"]) {
				continue
			}
			return object
		}
	}
	return nil
}

// differ reports whether a and b are both non-empty strings and not equal.
func differ(a, b any) bool {
	x, _ := a.(string)
	y, _ := b.(string)
	return x != "" && y != "" && x != y
}

func startsCall(part map[string]any) bool {
	id, _ := part["id"].(string)
	function, _ := part["function"].(map[string]any)
	name, _ := function["name"].(string)
	return id != "" && name != ""
}
