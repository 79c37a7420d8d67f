package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/model/transport"
)

// fold makes one chat.completion object out of the chunks of a stream, fields
// that nobody here knows included.
type fold struct {
	whole map[string]any
	told  *transport.Pieces // is told of texts as they come
	// thinks is the field in which the thinking comes; some servers have two
	// that say the same.
	thinks string
}

func (f *fold) empty() bool { return f.whole == nil }

// add takes the next chunk.
func (f *fold) add(event []byte) error {
	d := json.NewDecoder(bytes.NewReader(event))
	d.UseNumber()
	var chunk map[string]any
	if err := d.Decode(&chunk); err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	choices, _ := chunk["choices"].([]any)
	for _, c := range choices { // a part becomes the message it is a part of
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
			f.tell(part)
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

// tell tells of the texts of a part.
func (f *fold) tell(part map[string]any) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		text, _ := part[name].(string)
		if text != "" && (f.thinks == "" || f.thinks == name) {
			f.thinks = name
			f.told.Reasoning(text)
		}
	}
	switch content := part["content"].(type) {
	case string:
		f.told.Text(content)
	case []any: // Mistral
		for _, c := range content {
			object, _ := c.(map[string]any)
			text, _ := object["text"].(string)
			f.told.Text(text)
		}
	}
}

func (f *fold) json() ([]byte, error) {
	b, err := json.Marshal(f.whole)
	if err != nil {
		return nil, fmt.Errorf("put stream together: %w", err)
	}
	return b, nil
}

// part is what there is of an answer that will not come to its end; nil where
// there is nothing.
func (f *fold) part() []byte {
	if f.empty() {
		return nil
	}
	b, _ := f.json() // of values that were JSON
	return b
}

// grows says whether the parts of a string are to be joined; of others the
// newest is kept, for many servers repeat them in each chunk.
func grows(name string) bool {
	switch name {
	case "content", "reasoning", "reasoning_content", "refusal", "arguments", "text", "summary", "data":
		return true
	}
	return false
}

// joined is a string that grows at a flat cost.
type joined struct{ strings.Builder }

// MarshalJSON implements json.Marshaler.
func (j *joined) MarshalJSON() ([]byte, error) { return json.Marshal(j.String()) }

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
	if !grows(name) {
		if old, _ := into[name].(string); value != "" || old == "" {
			into[name] = value
		}
		return
	}
	j, ok := into[name].(*joined)
	if !ok {
		j = &joined{}
		into[name] = j
	}
	j.WriteString(value)
}

// mergeList merges objects of the same index, and appends everything else.
func mergeList(list, from []any) []any {
	for _, item := range from {
		object, ok := item.(map[string]any)
		if !ok {
			list = append(list, item)
			continue
		}
		known := find(list, object)
		if known == nil {
			known = map[string]any{}
			list = append(list, known)
		}
		mergeObject(known, object)
	}
	return list
}

// find is the object that another one is a part of: the newest with its index.
// Servers that give every tool call the same index begin each with an id and a
// name of its own, and parts of a thinking may be of several types.
func find(list []any, part map[string]any) map[string]any {
	n, ok := part["index"].(json.Number)
	if !ok {
		return nil
	}
	for _, item := range slices.Backward(list) {
		if object, ok := item.(map[string]any); ok && object["index"] == n {
			if beginsCall(part) && object["id"] != nil && object["id"] != part["id"] {
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

// differ says that both are texts, and not the same.
func differ(a, b any) bool {
	x, _ := a.(string)
	y, _ := b.(string)
	return x != "" && y != "" && x != y
}

func beginsCall(part map[string]any) bool {
	id, _ := part["id"].(string)
	function, _ := part["function"].(map[string]any)
	name, _ := function["name"].(string)
	return id != "" && name != ""
}
