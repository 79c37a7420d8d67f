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
	// it twice, in two fields.
	reasoningField string
}

// add merges the next chunk.
func (f *accumulator) add(event []byte) error {
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
			f.writeDelta(part)
		}
	}
	if chunk["object"] != nil {
		chunk["object"] = "chat.completion"
	}
	if f.whole == nil {
		f.whole = map[string]any{}
	}
	mergeObject(f.whole, chunk)
	return nil
}

// writeDelta sends the texts of a partial message to the delta writer.
func (f *accumulator) writeDelta(part map[string]any) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		text, _ := part[name].(string)
		if text != "" && (f.reasoningField == "" || f.reasoningField == name) {
			f.reasoningField = name
			f.deltas.Reasoning(text)
		}
	}
	switch content := part["content"].(type) {
	case string:
		f.deltas.Text(content)
	case []any: // Mistral
		f.deltas.Text(textOf(content))
	}
}

// json returns the assembled object, or nil if there were no chunks.
func (f *accumulator) json() ([]byte, error) {
	if f.whole == nil {
		return nil, nil
	}
	b, err := json.Marshal(f.whole)
	if err != nil {
		return nil, fmt.Errorf("assemble stream: %w", err)
	}
	return b, nil
}

// partialJSON returns what has arrived of an incomplete response; nil if nothing.
func (f *accumulator) partialJSON() []byte {
	if f.whole == nil {
		return nil
	}
	b, _ := f.json() // all values came from JSON
	return b
}

// isConcatenated reports whether the parts of a string field are joined. Of other
// strings the newest is kept: many servers repeat them in each chunk.
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
func (j *stringBuffer) MarshalJSON() ([]byte, error) { return json.Marshal(j.String()) }

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
	j, ok := into[name].(*stringBuffer)
	if !ok {
		j = &stringBuffer{}
		into[name] = j
	}
	j.WriteString(value)
}

// mergeList merges objects with the same index and appends all other items.
func mergeList(list, from []any) []any {
	for _, item := range from {
		object, ok := item.(map[string]any)
		if !ok {
			list = append(list, item)
			continue
		}
		known := findPart(list, object)
		if known == nil {
			known = map[string]any{}
			list = append(list, known)
		}
		mergeObject(known, object)
	}
	return list
}

// findPart returns the object in list that part continues: the newest with the
// same index. Some servers give every tool call the same index; then a new id
// and name start a new call. Parts of thinking may differ in type.
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
