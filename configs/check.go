package configs

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/internal/text"
)

// check holds a layer against the shape of Config: every key must exist and
// every value be of its kind. It finds every mistake there is, and takes what
// is wrong out of the layer, so that the rest can be looked at further.
func (l Layer) check() error {
	if l.root == nil {
		return nil
	}
	return joined(l.checkNode(l.root, reflect.TypeFor[Config](), ""))
}

func (l Layer) checkNode(n *yaml.Node, t reflect.Type, path string) []error {
	one := func(format string, args ...any) []error { return []error{l.errorf(n, format, args...)} }
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil
	case t.Kind() == reflect.Struct:
		return l.checkStruct(n, t, path)
	case isTemplate(path) && n.Kind == yaml.MappingNode:
		return nil // {file: PATH}, see readPrompts
	case isItems(t) && n.Kind == yaml.SequenceNode:
		return l.checkItems(n, itemOf(t), path)
	case t == reflect.TypeFor[Override]() && n.Kind == yaml.MappingNode:
		return l.checkStruct(n, reflect.TypeFor[Model](), path)
	case t == reflect.TypeFor[[]string]() && n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return []error{l.errorf(item, "%s[%d]: a text is needed, %s is not", path, i, describe(item))}
			}
		}
	case t.Kind() == reflect.Pointer:
		t = t.Elem()
	}
	value := reflect.New(t)
	if err := n.Decode(value.Interface()); err != nil {
		if t.Kind() == reflect.Map && n.Kind == yaml.MappingNode || t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode {
			return one("%s: %s", path, yamlReason(err))
		}
		return one("%s: %s is needed, %s is not", path, kindName(t), describe(n))
	}
	if f, ok := value.Interface().(*float64); ok && (math.IsNaN(*f) || math.IsInf(*f, 0)) {
		return one("%s: a number is needed, %s is not", path, describe(n))
	}
	if (value.Elem().CanInt() || value.Elem().CanUint()) && n.Tag == "!!float" {
		var f float64 // yaml cuts a fraction off without a word
		if err := n.Decode(&f); err != nil || f != math.Trunc(f) {
			return one("%s: %s is needed, %s is not", path, kindName(t), describe(n))
		}
	}
	return nil
}

// yamlReason is the first thing that yaml found, on one line.
func yamlReason(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n")
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return first
}

func (l Layer) checkStruct(n *yaml.Node, t reflect.Type, path string) []error {
	if n.Kind != yaml.MappingNode {
		return []error{l.errorf(n, "%s: keys and values are needed, %s is not", orTop(path), describe(n))}
	}
	var errs []error
	var right []*yaml.Node
	fields := fieldsOf(t)
	seen := map[string]int{}
	for i := 0; i < len(n.Content) && len(errs) < maxMistakes; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		full := strings.TrimPrefix(path+"."+key.Value, ".")
		field, ok := fields[key.Value]
		if !ok {
			errs = append(errs, l.errorf(key, "unknown key %s%s", shown(full), suggest(key.Value, path, fields)))
			continue
		}
		if first, dup := seen[key.Value]; dup {
			errs = append(errs, l.errorf(key, "%s is set twice; first in line %d", full, first))
			continue
		}
		seen[key.Value] = key.Line
		wrong := l.checkNode(value, field, full)
		if errs = append(errs, wrong...); len(wrong) == 0 || mendable(field, value) {
			right = append(right, key, value)
		}
	}
	n.Content = right
	return errs
}

// mendable says that what is wrong with a value was taken out of it.
func mendable(t reflect.Type, value *yaml.Node) bool {
	return (t.Kind() == reflect.Struct || t == reflect.TypeFor[Override]()) && value.Kind == yaml.MappingNode || isItems(t) && value.Kind == yaml.SequenceNode
}

// isItems says that a type is a list whose items have keys of their own.
func isItems(t reflect.Type) bool { return itemOf(t) != nil }

// itemOf is the type that has the keys of a list's items; nil where they have none.
func itemOf(t reflect.Type) reflect.Type {
	switch t {
	case reflect.TypeFor[[]Override]():
		return reflect.TypeFor[Model]()
	case reflect.TypeFor[[]policy.Rule](), reflect.TypeFor[[]tools.HostTool](), reflect.TypeFor[[]tools.MCPServer]():
		return t.Elem()
	}
	return nil
}

// maxMistakes in one section are enough: the file is of another kind.
const maxMistakes = 50

// shown is a key as messages may show it: bounded.
func shown(key string) string { return text.ClipRunes(key, 80) }

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t == reflect.TypeFor[policy.Words]() {
			return "a text, or a list of texts,"
		}
		switch t.Elem().Kind() {
		case reflect.Map, reflect.Struct:
			return "a list of keys and values"
		case reflect.Int:
			return "a list of whole numbers"
		}
		return "a list of texts"
	case reflect.Map:
		return "a mapping of names to values"
	default:
		return "a text"
	}
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	default:
		return fmt.Sprintf("%.60q", n.Value)
	}
}

func orTop(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

// checkItems holds each of a list to the keys of a type. What is wrong is taken
// out, but for the number that the others have.
func (l Layer) checkItems(n *yaml.Node, t reflect.Type, path string) []error {
	var errs []error
	for i, item := range n.Content {
		wrong := l.checkStruct(item, t, fmt.Sprintf("%s[%d]", path, i))
		if len(errs) < maxMistakes {
			errs = append(errs, wrong...)
		}
		if item.Kind != yaml.MappingNode {
			n.Content[i] = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
	}
	return errs
}
