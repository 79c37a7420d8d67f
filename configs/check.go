package configs

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/internal/text"
)

// check checks a layer against the type of Config: every key must exist and every value
// must have the right type. It reports the errors, see maxErrors, and removes invalid
// settings from the layer, so that the other settings can be validated.
func (l Layer) check() error {
	if l.root == nil {
		return nil
	}
	return join(l.checkNode(l.root, reflect.TypeFor[Config](), ""))
}

func (l Layer) checkNode(n *yaml.Node, t reflect.Type, path string) []error {
	errorAt := func(format string, args ...any) []error { return []error{l.errorf(n, format, args...)} }
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil
	case t.Kind() == reflect.Struct:
		return l.checkStruct(n, t, path)
	case isTemplate(path) && n.Kind == yaml.MappingNode:
		return nil // {file: PATH}, see readPrompts
	case itemOf(t) != nil && n.Kind == yaml.SequenceNode:
		return l.checkItems(n, itemOf(t), path)
	case t == reflect.TypeFor[Override]() && n.Kind == yaml.MappingNode:
		return l.checkStruct(n, reflect.TypeFor[Model](), path)
	case t == reflect.TypeFor[[]string]() && n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return []error{l.errorf(item, "%s[%d]: it must be a string, not %s", path, i, describe(item))}
			}
		}
	case t.Kind() == reflect.Pointer:
		t = t.Elem()
	}
	value := reflect.New(t)
	if err := n.Decode(value.Interface()); err != nil {
		if t.Kind() == reflect.Map && n.Kind == yaml.MappingNode || t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode {
			return errorAt("%s: %s", path, firstYAMLError(err))
		}
		return errorAt("%s: it must be %s, not %s", path, kindName(t), describe(n))
	}
	if f, ok := value.Interface().(*float64); ok && (math.IsNaN(*f) || math.IsInf(*f, 0)) {
		return errorAt("%s: it must be a number, not %s", path, describe(n))
	}
	if (value.Elem().CanInt() || value.Elem().CanUint()) && n.Tag == "!!float" {
		var f float64 // yaml truncates fractions silently
		if err := n.Decode(&f); err != nil || f != math.Trunc(f) {
			return errorAt("%s: it must be %s, not %s", path, kindName(t), describe(n))
		}
	}
	return nil
}

// firstYAMLError returns the first line of a yaml error.
func firstYAMLError(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n")
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return first
}

func (l Layer) checkStruct(n *yaml.Node, t reflect.Type, path string) []error {
	if n.Kind != yaml.MappingNode {
		return []error{l.errorf(n, "%s: it must be a mapping, not %s", orFile(path), describe(n))}
	}
	var errs []error
	var valid []*yaml.Node
	fields := fieldsOf(t)
	seen := map[string]int{}
	for i := 0; i < len(n.Content) && len(errs) < maxErrors; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		full := strings.TrimPrefix(path+"."+key.Value, ".")
		field, ok := fields[key.Value]
		if !ok {
			errs = append(errs, l.errorf(key, "unknown key %s%s", clipKey(full), suggest(key.Value, path, fields)))
			continue
		}
		if first, duplicate := seen[key.Value]; duplicate {
			errs = append(errs, l.errorf(key, "%s is set twice; first on line %d", full, first))
			continue
		}
		seen[key.Value] = key.Line
		invalid := l.checkNode(value, field, full)
		if errs = append(errs, invalid...); len(invalid) == 0 || isRepaired(field, value) {
			valid = append(valid, key, value)
		}
	}
	n.Content = valid
	return errs
}

// isRepaired reports whether checkNode removed the invalid parts of a value.
func isRepaired(t reflect.Type, value *yaml.Node) bool {
	return (t.Kind() == reflect.Struct || t == reflect.TypeFor[Override]()) && value.Kind == yaml.MappingNode || itemOf(t) != nil && value.Kind == yaml.SequenceNode
}

// itemOf returns the type of a list's items; nil if the items have no known keys.
func itemOf(t reflect.Type) reflect.Type {
	switch {
	case t == reflect.TypeFor[[]Override]():
		return reflect.TypeFor[Model]()
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return t.Elem()
	}
	return nil
}

// maxErrors is the number of errors after which the check of a section stops. A file with
// more errors is probably not a configuration.
const maxErrors = 50

// clipKey shortens a key for a message.
func clipKey(key string) string { return text.ClipRunes(key, 80) }

// kindName returns the kind of a type's values in words.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t == reflect.TypeFor[policy.StringList]() {
			return "a string or a list of strings"
		}
		switch t.Elem().Kind() {
		case reflect.Map, reflect.Struct:
			return "a list of mappings"
		case reflect.Int:
			return "a list of whole numbers"
		}
		return "a list of strings"
	case reflect.Map:
		return "a mapping"
	default:
		return "a string"
	}
}

// describe returns a value for a message, or the kind of a list or mapping.
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

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

// checkItems checks each item of a list against a type. It replaces an item that is not a
// mapping by an empty one instead of removing it, so that the other items keep their indexes.
func (l Layer) checkItems(n *yaml.Node, t reflect.Type, path string) []error {
	var errs []error
	for i, item := range n.Content {
		invalid := l.checkStruct(item, t, fmt.Sprintf("%s[%d]", path, i))
		if len(errs) < maxErrors {
			errs = append(errs, invalid...)
		}
		if item.Kind != yaml.MappingNode {
			n.Content[i] = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
	}
	return errs
}
