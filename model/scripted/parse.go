package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/model"
)

// Parse parses a script. name appears in errors. A name that ends in .json selects
// JSON; all others select YAML.
func Parse(name string, data []byte) (*Script, error) {
	s := &Script{name: name}
	var err error
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json":
		s.replies, err = fromJSON(name, data)
	default:
		s.replies, err = fromYAML(name, data)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func fromYAML(name string, data []byte) (map[string][]reply, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:1: no replies", name)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	switch err := d.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("%s:%d: more than one YAML document", name, second.Line)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return interpret(name, resolve(doc.Content[0]))
}

func fromJSON(name string, data []byte) (map[string][]reply, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	return interpret(name, root)
}

// interpret reads the replies from the tree of either format.
func interpret(name string, root *yaml.Node) (map[string][]reply, error) {
	byInstance := map[string][]reply{}
	if root.Kind != yaml.MappingNode {
		list, err := parseList(root)
		if err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
		byInstance[wildcard] = list
		return byInstance, nil
	}
	for key, value := range pairs(root) {
		if _, duplicate := byInstance[key.Value]; duplicate {
			return nil, fmt.Errorf("%s:%w", name, errorAt(key, "duplicate instance %q", key.Value))
		}
		list, err := parseList(value)
		if err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
		byInstance[key.Value] = list
	}
	if len(byInstance) == 0 {
		return nil, fmt.Errorf("%s:%d: no replies", name, root.Line)
	}
	return byInstance, nil
}

// errorAt returns an error that begins with the node's line number.
func errorAt(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%d: %s", n.Line, fmt.Sprintf(format, args...))
}

// pairs returns an iterator over the keys and resolved values of a mapping.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], resolve(n.Content[i+1])) {
				return
			}
		}
	}
}

// resolve follows a YAML alias. YAML has no aliases of aliases.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func parseList(n *yaml.Node) ([]reply, error) {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		return nil, errorAt(n, "want a list of replies, have %s", kind(n))
	}
	if len(n.Content) == 0 {
		return nil, errorAt(n, "the list of replies is empty")
	}
	list := make([]reply, 0, len(n.Content))
	for _, item := range n.Content {
		r, err := parseReply(resolve(item))
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

func parseReply(n *yaml.Node) (reply, error) {
	r := newReply("")
	if n.Kind != yaml.MappingNode {
		content, err := parseText(n, "a reply")
		r.Message.Content = content
		return r, err
	}
	seen := map[string]bool{}
	for key, value := range pairs(n) {
		if seen[key.Value] {
			return r, errorAt(key, "duplicate key %q", key.Value)
		}
		seen[key.Value] = true
		if err := r.set(key, value); err != nil {
			return r, err
		}
	}
	if !seen["content"] && !seen["tool_calls"] {
		return r, errorAt(n, "the reply has no content")
	}
	if seen["finish_reason"] {
		return r, nil
	}
	return withCalls(r, r.Message.ToolCalls), nil
}

// withCalls adds tool calls to a reply and sets its finish reason.
func withCalls(r reply, calls []model.ToolCall) reply {
	if len(calls) > 0 {
		r.Message.ToolCalls, r.FinishReason = calls, model.FinishToolCalls
	}
	return r
}

func newReply(content string) reply {
	return reply{Reply: model.Reply{
		Message:      model.Message{Role: model.Assistant, Content: content},
		FinishReason: model.FinishStop, Model: "scripted", Tries: 1,
	}}
}

func (r *reply) set(key, value *yaml.Node) error {
	var err error
	var number float64
	switch key.Value {
	case "content":
		r.Message.Content, err = parseText(value, "content")
	case "reasoning_content":
		r.Message.Reasoning, err = parseText(value, "reasoning_content")
	case "tool_calls":
		r.Message.ToolCalls, err = parseCalls(value)
	case "finish_reason":
		var s string
		s, err = parseText(value, "finish_reason")
		r.FinishReason = model.FinishReason(s)
	case "cost":
		number, err = parseNumber(value, "cost", 1e9)
		r.Cost = model.Cost(number)
	case "latency":
		number, err = parseNumber(value, "latency", 1e6)
		r.latency = time.Duration(number * float64(time.Second))
	case "usage":
		r.Usage, err = parseUsage(value)
	default:
		err = errorAt(key, "unknown key %q (want content, tool_calls, cost, latency, finish_reason, reasoning_content, usage)", key.Value)
	}
	return err
}

func parseUsage(n *yaml.Node) (model.Usage, error) {
	var u model.Usage
	if n.Kind != yaml.MappingNode {
		return u, errorAt(n, "usage: want a map, have %s", kind(n))
	}
	for key, value := range pairs(n) {
		number, err := parseNumber(value, key.Value, 1e12)
		if err == nil && number != math.Trunc(number) {
			err = errorAt(value, "%s: want a whole number, have %s", key.Value, value.Value)
		}
		if err != nil {
			return u, err
		}
		switch key.Value {
		case "prompt_tokens":
			u.Prompt = int64(number)
		case "completion_tokens":
			u.Completion = int64(number)
		case "cached_tokens":
			u.CacheRead = int64(number)
		case "cache_write_tokens":
			u.CacheWrite = int64(number)
		case "reasoning_tokens":
			u.Reasoning = int64(number)
		default:
			return u, errorAt(key, "unknown key %q in usage (want prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, reasoning_tokens)", key.Value)
		}
	}
	switch {
	case u.CacheRead+u.CacheWrite > u.Prompt:
		return u, errorAt(n, "usage: cached_tokens and cache_write_tokens are part of prompt_tokens, and cannot be more")
	case u.Reasoning > u.Completion:
		return u, errorAt(n, "usage: reasoning_tokens are part of completion_tokens, and cannot be more")
	}
	return u, nil
}

func parseText(n *yaml.Node, what string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		return "", errorAt(n, "%s: want a string, have %s", what, kind(n))
	}
	return n.Value, nil
}

// parseNumber reads a number from 0 to limit.
func parseNumber(n *yaml.Node, what string, limit float64) (float64, error) {
	if n.Kind != yaml.ScalarNode || (n.Tag != "!!int" && n.Tag != "!!float") {
		return 0, errorAt(n, "%s: want a number, have %s", what, kind(n))
	}
	var f float64
	if err := n.Decode(&f); err != nil || !(f >= 0 && f <= limit) {
		return 0, errorAt(n, "%s: want a number from 0 to %.0f, have %s", what, limit, n.Value)
	}
	return f, nil
}

// kind returns the kind of a node in words, for error messages.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!str":
		return "a string"
	case "!!null":
		return "nothing"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	}
	return n.Tag
}
