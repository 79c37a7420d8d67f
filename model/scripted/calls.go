package scripted

import (
	"encoding/json"
	"errors"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/model"
)

// parseCalls reads the tool calls of a reply. A call is a command, or a mapping
// with either command or arguments, and optionally name and id. As from a real
// model, arguments may be invalid JSON: a string is used as is.
func parseCalls(n *yaml.Node) ([]model.ToolCall, error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return nil, errorAt(n, "tool_calls: want a list of calls, have %s", kind(n))
	}
	calls := make([]model.ToolCall, 0, len(n.Content))
	for _, item := range n.Content {
		c, err := parseCall(resolve(item))
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}

func parseCall(n *yaml.Node) (model.ToolCall, error) {
	if n.Kind != yaml.MappingNode {
		command, err := parseText(n, "a tool call")
		return BashCall(command), err
	}
	c := BashCall("")
	var arguments, command bool
	for key, value := range pairs(n) {
		var err error
		switch key.Value {
		case "id":
			c.ID, err = parseText(value, "id")
		case "name":
			c.Name, err = parseText(value, "name")
		case "command":
			var text string
			text, err = parseText(value, "command")
			c.Arguments, command = BashCall(text).Arguments, true
		case "arguments":
			c.Arguments, err = parseArguments(value)
			arguments = true
		default:
			err = errorAt(key, "unknown key %q in a tool call (want command, or name and arguments; id)", key.Value)
		}
		if err != nil {
			return c, err
		}
	}
	if command == arguments {
		return c, errorAt(n, "a tool call has either a command or arguments")
	}
	return c, nil
}

// BashCall returns a call of the tool bash.
func BashCall(command string) model.ToolCall {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]string{"command": command}); err != nil { // strings always encode
		panic(err)
	}
	return model.ToolCall{Name: "bash", Arguments: strings.TrimSpace(b.String())}
}

func parseArguments(n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return n.Value, nil
	}
	value, err := toPlain(n, 0)
	if err != nil {
		return "", errorAt(n, "arguments: %v", err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return "", errorAt(n, "arguments: %v", err)
	}
	return string(data), nil
}

// toPlain converts a tree to the types that json.Marshal takes. The tree of a
// JSON script has no document node, so yaml cannot decode it as a whole.
func toPlain(n *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deep")
	}
	switch n = resolve(n); n.Kind {
	case yaml.MappingNode:
		object := map[string]any{}
		for key, value := range pairs(n) {
			v, err := toPlain(value, depth+1)
			if err != nil {
				return nil, err
			}
			object[key.Value] = v
		}
		return object, nil
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			v, err := toPlain(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	var v any
	err := n.Decode(&v)
	return v, err
}
