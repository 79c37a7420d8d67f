package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// Document is a file of settings as the user wrote it. Changes preserve comments, order
// and quotes, but normalize indentation and blank lines.
type Document struct {
	name string
	text string
	head string     // the comments of a file that has nothing else
	doc  *yaml.Node // the parsed text
}

// OpenDocument parses a file as YAML. It does not check the settings; Layer does.
func OpenDocument(name string, data []byte) (*Document, error) {
	doc, err := decode(name, data)
	if err != nil {
		return nil, err
	}
	d := &Document{name: name, text: string(data), doc: doc}
	if doc == nil {
		d.doc = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
		if d.head = d.text; d.head != "" && !strings.HasSuffix(d.head, "\n") {
			d.head += "\n"
		}
	}
	if root := d.root(); root.Kind != yaml.MappingNode {
		return nil, &configError{fmt.Sprintf("%s:%d: it must be a mapping, not %s", name, root.Line, describe(root))}
	}
	return d, nil
}

func (d *Document) root() *yaml.Node { return d.doc.Content[0] }

// Bytes returns the current text.
func (d *Document) Bytes() []byte { return []byte(d.text) }

// Layer returns the settings, checked as in ReadFile.
func (d *Document) Layer() (Layer, error) { return parse(d.name, d.Bytes(), filepath.Dir(d.name)) }

// Keys returns the dotted keys of all values in the file, in order.
func (d *Document) Keys() []string {
	var keys []string
	for key := range leaves(d.root(), "") {
		keys = append(keys, key)
	}
	return keys
}

// Value returns the value of a key on one line; ok is false if it is not set.
func (d *Document) Value(key string) (value string, ok bool) {
	n := nodeAt(d.root(), key)
	if n == nil {
		return "", false
	}
	if n.Kind == yaml.ScalarNode {
		return n.Value, true
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return "", false
	}
	data, err := json.Marshal(v)
	return string(data), err == nil
}

// Set sets a key to a value, parsed as in ParseSetting; several values form a list. It
// checks the value but not the rest of the document.
func (d *Document) Set(key string, values ...string) error {
	leaf, err := d.leaf(key, values)
	if err != nil {
		return err
	}
	path := strings.Split(key, ".")
	if err := d.checkNoAlias(d.root(), path); err != nil {
		return err
	}
	setNode(d.root(), path, leaf)
	return d.encode()
}

// leaf returns the node for a value.
func (d *Document) leaf(key string, values []string) (*yaml.Node, error) {
	const name = "set"
	t := typeOf(key)
	isList := t != nil && t.Kind() == reflect.Slice
	switch {
	case len(values) == 0:
		return nil, &configError{fmt.Sprintf("%s %s: the value is missing", name, clipKey(key))}
	case len(values) > 1 && !isList:
		return nil, &configError{fmt.Sprintf("%s %s: it takes one value, not %d; put it in quotes", name, clipKey(key), len(values))}
	}
	value := values[0]
	if isList && (len(values) > 1 || !isYAMLList(value)) {
		data, err := json.Marshal(values)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, clipKey(key), err)
		}
		value = string(data)
	}
	l, err := ParseSetting(name, key, value)
	if err != nil {
		return nil, err
	}
	n := l.node(key)
	if n == nil { // an old name, which stands for another key
		return nil, &configError{fmt.Sprintf("%s %s: mini has another name for it; see %s", name, clipKey(key), MigrationGuide)}
	}
	for _, scalar := range append(n.Content, n) {
		if scalar.Kind == yaml.ScalarNode && scalar.Style == yaml.DoubleQuotedStyle {
			scalar.Style = 0 // the encoder adds quotes if necessary
		}
	}
	return n, nil
}

// Unset removes a key, or a section; ok is false if it was not set.
func (d *Document) Unset(key string) (ok bool, err error) {
	path := strings.Split(key, ".")
	if err := d.checkNoAlias(d.root(), path); err != nil {
		return false, err
	}
	if !remove(d.root(), path) {
		return false, nil
	}
	return true, d.encode()
}

// encode writes the tree to the text. It fails if decoding the text gives another result, which
// comments in unusual places can cause.
func (d *Document) encode() error {
	root := d.root()
	var b bytes.Buffer
	if b.WriteString(d.head); len(root.Content) > 0 {
		enc := yaml.NewEncoder(&b)
		enc.SetIndent(2)
		if err := errors.Join(enc.Encode(d.doc), enc.Close()); err != nil {
			return fmt.Errorf("write %s: %w", d.name, err)
		}
	} else {
		for _, comment := range []string{d.doc.HeadComment, root.HeadComment, root.FootComment, d.doc.FootComment} {
			if comment != "" {
				b.WriteString(comment + "\n")
			}
		}
	}
	var want, got any
	written, err := decode(d.name, b.Bytes())
	if err == nil && written != nil {
		err = written.Decode(&got)
	}
	if err = errors.Join(err, root.Decode(&want)); err != nil || written != nil && !reflect.DeepEqual(got, want) {
		return &configError{d.name + ": mini cannot change a file in this format; use mini config edit"}
	}
	d.text = b.String()
	return nil
}

// checkNoAlias returns an error if the path leads through an alias.
func (d *Document) checkNoAlias(n *yaml.Node, path []string) error {
	for _, part := range path {
		if n = child(n, part); n == nil {
			return nil
		}
		if n.Kind == yaml.AliasNode {
			return &configError{fmt.Sprintf("%s:%d: %s is an alias, so a change would affect other settings; use mini config edit", d.name, n.Line, part)}
		}
	}
	return nil
}

// setNode sets the value at a path and creates missing sections.
func setNode(m *yaml.Node, path []string, leaf *yaml.Node) {
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

// remove removes the value at a path, and sections that become empty. It reports whether
// the value existed.
func remove(m *yaml.Node, path []string) bool {
	if m.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		if key.Value != path[0] { //nolint:gosec // path has an element
			continue
		}
		if len(path) > 1 {
			if !remove(value, path[1:]) {
				return false
			}
			if len(value.Content) > 0 {
				return true
			}
		}
		m.Content = append(m.Content[:i:i], m.Content[i+2:]...)
		return true
	}
	return false
}
