package configs

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// check holds a layer against the shape of Config: every key must exist and
// every value be of its kind.
func (l Layer) check() error {
	if l.root == nil {
		return nil
	}
	return l.checkNode(l.root, reflect.TypeFor[Config](), "")
}

func (l Layer) checkNode(n *yaml.Node, t reflect.Type, path string) error {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil
	case t.Kind() == reflect.Struct:
		return l.checkStruct(n, t, path)
	case isTemplate(path) && n.Kind == yaml.MappingNode:
		return nil // {file: PATH}, see readPrompts
	}
	value := reflect.New(t)
	if err := n.Decode(value.Interface()); err != nil {
		if t.Kind() == reflect.Map && n.Kind == yaml.MappingNode || t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode {
			return l.errorf(n, "%s: %s", path, yamlReason(err))
		}
		return l.errorf(n, "%s: %s is needed, %s is not", path, kindName(t), describe(n))
	}
	if f, ok := value.Interface().(*float64); ok && (math.IsNaN(*f) || math.IsInf(*f, 0)) {
		return l.errorf(n, "%s: a number is needed, %s is not", path, describe(n))
	}
	return nil
}

// yamlReason is the first thing that yaml found, on one line.
func yamlReason(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n")
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return first
}

func (l Layer) checkStruct(n *yaml.Node, t reflect.Type, path string) error {
	if n.Kind != yaml.MappingNode {
		return l.errorf(n, "%s: keys and values are needed, %s is not", orTop(path), describe(n))
	}
	fields := fieldsOf(t)
	seen := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		full := strings.TrimPrefix(path+"."+key.Value, ".")
		field, ok := fields[key.Value]
		if !ok {
			return l.errorf(key, "unknown key %s%s", full, suggest(key.Value, path, fields))
		}
		if first, dup := seen[key.Value]; dup {
			return l.errorf(key, "%s is set twice; first in line %d", full, first)
		}
		seen[key.Value] = key.Line
		if err := l.checkNode(value, field, full); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf maps the yaml names of a struct to their types.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			fields[name] = t.Field(i).Type
		}
	}
	return fields
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
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

// suggest names the nearest valid key, or, where none is near, all of them.
func suggest(key, path string, fields map[string]reflect.Type) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	best, distance := "", len(key)/2+1
	for _, name := range names {
		if d := editDistance(key, name); d < distance {
			best, distance = name, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %s?", strings.TrimPrefix(path+"."+best, "."))
	}
	return fmt.Sprintf("; %s has %s", orTop(path), strings.Join(names, ", "))
}

// editDistance is how many letters must be added, removed or replaced.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
