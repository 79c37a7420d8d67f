package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// Document is a file of settings as somebody has written it. What is changed in
// it leaves all the rest as it stands: comments, order, blank lines, quotes.
type Document struct {
	name string
	text string
}

// OpenDocument reads the text of a file. Its form must be YAML; what its settings
// say is looked at by Layer.
func OpenDocument(name string, data []byte) (*Document, error) {
	d := &Document{name: name, text: string(data)}
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	if root != nil && root.Kind != yaml.MappingNode && !isNull(root) {
		return nil, &mistake{fmt.Sprintf("%s:%d: keys and values are needed, %s is not", name, root.Line, describe(root))}
	}
	return d, nil
}

// Bytes is the text as it is now.
func (d *Document) Bytes() []byte { return []byte(d.text) }

// Layer is what it says, checked as ReadFile does.
func (d *Document) Layer() (Layer, error) { return parse(d.name, d.Bytes(), filepath.Dir(d.name)) }

// Keys are the settings in it, in its order; those of mappings one by one.
func (d *Document) Keys() []string {
	root, err := d.root()
	if err != nil || root == nil || root.Kind != yaml.MappingNode {
		return nil
	}
	var keys []string
	for key := range leaves(root, "") {
		keys = append(keys, key)
	}
	return keys
}

// Value is what a key is set to, on one line; ok is false where it is not set.
func (d *Document) Value(key string) (value string, ok bool) {
	root, err := d.root()
	if err != nil {
		return "", false
	}
	n := root
	for _, part := range strings.Split(key, ".") {
		if n = child(n, part); n == nil {
			return "", false
		}
	}
	if n.Kind == yaml.ScalarNode {
		return n.Value, true
	}
	return inline(n), true
}

// Set gives a key a value, read as Setting reads it; a list may be given one by
// one. The value is checked, and the document as a whole is not.
func (d *Document) Set(key string, values ...string) error {
	leaf, err := d.leaf(key, values)
	if err != nil {
		return err
	}
	want, err := d.root()
	if err != nil {
		return err
	}
	if want == nil || isNull(want) {
		want = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	path := strings.Split(key, ".")
	if err := d.noAlias(want, path); err != nil {
		return err
	}
	put(want, path, leaf)
	return d.become(want, d.rewritten(path, leaf))
}

// leaf is the node of a value, as it may stand in a file.
func (d *Document) leaf(key string, values []string) (*yaml.Node, error) {
	const name = "set"
	t := typeOf(key)
	list := t != nil && t.Kind() == reflect.Slice
	switch {
	case len(values) == 0:
		return nil, &mistake{fmt.Sprintf("%s %s: to what? A value is missing", name, shown(key))}
	case len(values) > 1 && !list:
		return nil, &mistake{fmt.Sprintf("%s %s: it takes one value, and %d were given; put it in quotes", name, shown(key), len(values))}
	}
	value := values[0]
	if list && (len(values) > 1 || !yamlList(value)) {
		var all yaml.Node
		if err := all.Encode(values); err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, shown(key), err)
		}
		all.Style = yaml.FlowStyle
		value = inline(&all)
	}
	l, err := Setting(name, key, value)
	if err != nil {
		return nil, err
	}
	n := l.root
	for range strings.Split(key, ".") {
		if n == nil || len(n.Content) < 2 {
			return nil, &mistake{fmt.Sprintf("%s %s: it has no value", name, shown(key))}
		}
		n = n.Content[1]
	}
	if n.Kind == yaml.ScalarNode && n.Style == yaml.DoubleQuotedStyle {
		n.Style = 0 // where they are needed they come back
	}
	return n, nil
}

// Unset takes a key out, a section with all below it; ok is false where it was
// not there.
func (d *Document) Unset(key string) (ok bool, err error) {
	want, err := d.root()
	if err != nil || want == nil {
		return false, err
	}
	path := strings.Split(key, ".")
	if err := d.noAlias(want, path); err != nil {
		return false, err
	}
	gone := remove(want, path)
	if len(gone) == 0 {
		return false, nil
	}
	return true, d.become(want, d.without(gone))
}

// become takes the text that was changed where it stands, if it says what is
// wanted, and else writes the wanted tree anew, with its comments.
func (d *Document) become(want *yaml.Node, text string) error {
	if got, err := (&Document{d.name, text}).root(); err == nil && sameMeaning(got, want) {
		d.text = text
		return nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(want); err != nil {
		return fmt.Errorf("write %s: %w", d.name, err)
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("write %s: %w", d.name, err)
	}
	d.text = b.String()
	return nil
}

// sameMeaning says that two trees mean the same.
func sameMeaning(a, b *yaml.Node) bool {
	var x, y any
	if a != nil && a.Decode(&x) != nil || b != nil && b.Decode(&y) != nil {
		return false
	}
	empty := func(v any) bool { m, ok := v.(map[string]any); return v == nil || ok && len(m) == 0 }
	return reflect.DeepEqual(x, y) || empty(x) && empty(y)
}

// root is a fresh tree of the text; nil where it is empty.
func (d *Document) root() (*yaml.Node, error) {
	dec := yaml.NewDecoder(strings.NewReader(d.text))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil //nolint:nilnil // there is nothing in it
		}
		return nil, &mistake{d.name + ":" + yamlPlace.ReplaceAllString(err.Error(), "$1: ")}
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &mistake{fmt.Sprintf("%s: a second document begins after the first; only one is read", d.name)}
	}
	return doc.Content[0], nil
}

// noAlias refuses to change what stands in two places.
func (d *Document) noAlias(n *yaml.Node, path []string) error {
	for _, part := range path {
		if n = child(n, part); n == nil {
			return nil
		}
		if n.Kind == yaml.AliasNode {
			return &mistake{fmt.Sprintf("%s:%d: %s is an alias, and what it stands for is elsewhere too; change it with mini config edit", d.name, n.Line, part)}
		}
	}
	return nil
}

// put sets the value at a path, making what is missing on the way.
func put(m *yaml.Node, path []string, leaf *yaml.Node) {
	for i, part := range path {
		next := child(m, part)
		if next == nil {
			next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: part}, next)
		}
		switch {
		case i == len(path)-1:
			line := next.LineComment
			*next = *leaf
			next.LineComment = line
		case next.Kind != yaml.MappingNode:
			*next = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		m = next
	}
}

// remove takes out what is at a path, and the sections that are empty then. It
// returns the keys and values that went, the outermost first.
func remove(m *yaml.Node, path []string) (gone [][2]*yaml.Node) {
	if m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		if key.Value != path[0] {
			continue
		}
		entry := [2]*yaml.Node{key, value}
		if len(path) > 1 {
			gone = remove(value, path[1:])
			if len(gone) == 0 || len(value.Content) > 0 {
				return gone
			}
		}
		m.Content = append(m.Content[:i:i], m.Content[i+2:]...)
		return append([][2]*yaml.Node{entry}, gone...)
	}
	return nil
}

// typeOf is the type of a setting; nil for what is none.
func typeOf(key string) (found reflect.Type) {
	walkKeys(reflect.TypeFor[Config](), "", func(name string, t reflect.Type) {
		if name == key {
			found = t
		}
	})
	return found
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// inline is a value as it is written behind a key, on one line.
func inline(n *yaml.Node) string {
	one := flowing(n)
	one.HeadComment, one.LineComment, one.FootComment = "", "", ""
	data, err := yaml.Marshal(one)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// flowing is a copy of a node in the style that stays on a line.
func flowing(n *yaml.Node) *yaml.Node {
	one := *n
	one.Content = nil
	for _, c := range n.Content {
		one.Content = append(one.Content, flowing(c))
	}
	switch {
	case one.Kind == yaml.MappingNode || one.Kind == yaml.SequenceNode:
		one.Style = yaml.FlowStyle
	case strings.ContainsAny(one.Value, "\n\r"):
		one.Style = yaml.DoubleQuotedStyle
	}
	return &one
}
