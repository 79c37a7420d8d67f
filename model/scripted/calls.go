package scripted

import (
	"encoding/json"
	"errors"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/model"
)

// parseCalls reads the tool calls of a reply. A call is a command, or has a
// name, arguments and an id of its own, which may be as wrong as those of a
// model: arguments that are a string are taken as they are.
func parseCalls(n *yaml.Node) ([]model.Call, error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return nil, at(n, "tool_calls: want a list of calls, have %s", kind(n))
	}
	calls := make([]model.Call, 0, len(n.Content))
	for _, item := range n.Content {
		c, err := parseCall(resolve(item))
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}

func parseCall(n *yaml.Node) (model.Call, error) {
	if n.Kind != yaml.MappingNode {
		command, err := parseText(n, "a tool call")
		return callOf(command), err
	}
	c := callOf("")
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
			c.Arguments, command = callOf(text).Arguments, true
		case "arguments":
			c.Arguments, err = parseArguments(value)
			arguments = true
		default:
			err = at(key, "unknown key %q in a tool call (known are command, or name and arguments; id)", key.Value)
		}
		if err != nil {
			return c, err
		}
	}
	if command == arguments {
		return c, at(n, "a tool call has either a command or arguments")
	}
	return c, nil
}

// callOf is a call of the tool bash.
func callOf(command string) model.Call {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]string{"command": command}); err != nil { // a string always has a form
		panic(err)
	}
	return model.Call{Name: "bash", Arguments: strings.TrimSpace(b.String())}
}

func parseArguments(n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return n.Value, nil
	}
	value, err := plain(n, 0)
	if err != nil {
		return "", at(n, "arguments: %v", err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return "", at(n, "arguments: %v", err)
	}
	return string(data), nil
}

// plain is a tree as json.Marshal takes it. It is done here since the tree of a
// JSON script is not one that yaml can decode whole.
func plain(n *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deep")
	}
	switch n = resolve(n); n.Kind {
	case yaml.MappingNode:
		object := map[string]any{}
		for key, value := range pairs(n) {
			v, err := plain(value, depth+1)
			if err != nil {
				return nil, err
			}
			object[key.Value] = v
		}
		return object, nil
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			v, err := plain(item, depth+1)
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
