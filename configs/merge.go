package configs

import (
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent"
)

// Resolved is a configuration with the place each value came from.
type Resolved struct {
	Config
	origins map[string]Origin // by dotted key
}

// Origin is where a value was set.
type Origin struct {
	Layer string
	Line  int // 0 where the layer has no lines
	text  int // the line above the first of a template's text; -1 unknown
}

// String is FILE:LINE, or the layer's name.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Layer
	}
	return fmt.Sprintf("%s:%d", o.Layer, o.Line)
}

// Merge lays the layers on top of each other, later ones winning: mappings are
// merged key by key, everything else is replaced whole, a null changes nothing.
func Merge(layers ...Layer) (*Resolved, error) {
	r := &Resolved{origins: map[string]Origin{}}
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, l := range layers {
		if l.root != nil {
			r.merge(root, l.root, l, "")
		}
	}
	if err := root.Decode(&r.Config); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return r, r.validate()
}

func (r *Resolved) merge(into, from *yaml.Node, l Layer, path string) {
	for i := 0; i < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		full := path + key.Value
		if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
			continue
		}
		old := child(into, key.Value)
		if value.Kind == yaml.MappingNode {
			switch {
			case old == nil:
				old = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
				into.Content = append(into.Content, key, old)
			case old.Kind != yaml.MappingNode:
				*old = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			}
			r.merge(old, value, l, full+".")
			continue
		}
		r.origins[full] = origin(l, value)
		if old != nil {
			*old = *value
			continue
		}
		clone := *value
		into.Content = append(into.Content, key, &clone)
	}
}

func origin(l Layer, value *yaml.Node) Origin {
	switch {
	case value.HeadComment != "" && value.Line == 1 && value.Column == 0: // a prompt file
		return Origin{Layer: value.HeadComment, Line: 1}
	case !l.line:
		return Origin{Layer: l.Name, text: -1}
	case value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return Origin{Layer: l.Name, Line: value.Line, text: value.Line}
	default:
		return Origin{Layer: l.Name, Line: value.Line, text: value.Line - 1}
	}
}

// Origin says where a key was set; ok is false for one nobody set.
func (r *Resolved) Origin(key string) (Origin, bool) {
	o, ok := r.origins[key]
	return o, ok
}

// Locate turns a mistake in a field of the agent's configuration into one that
// names the file and the line. Other errors are returned as they are.
func (r *Resolved) Locate(err error) error {
	field, ok := errors.AsType[*agent.FieldError](err)
	if !ok {
		return err
	}
	key := "agent." + field.Field
	if field.Field == "env_startup_command" {
		key = "run." + field.Field
	}
	o, known := r.origins[key]
	if !known {
		return &mistake{fmt.Sprintf("%s: %v", key, field.Err)}
	}
	if field.Line > 0 && o.text >= 0 {
		o.Line = o.text + field.Line
	}
	return &mistake{fmt.Sprintf("%s: %s: %v", o, key, field.Err)}
}

// errorf is a mistake in the value of a key.
func (r *Resolved) errorf(key, format string, args ...any) error {
	text := key + ": " + fmt.Sprintf(format, args...)
	if o, ok := r.origins[key]; ok {
		text = o.String() + ": " + text
	}
	return &mistake{text}
}

// Shipped says that a value is mini's own default.
func (o Origin) Shipped() bool { return strings.HasPrefix(o.Layer, shippedPrefix) }
