package configs

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
)

// Entry is one setting of a resolved configuration; secret values are redacted.
type Entry struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	// Origin is "default" for a built-in or unset value; otherwise a file and a line, a
	// flag, or a variable.
	Origin string `json:"origin"`
}

// Entries returns the settings under the prefixes (see KeysUnder), or all, in the order of
// Config. Each key of a mapping is a separate entry.
func (r *Resolved) Entries(prefixes ...string) ([]Entry, error) {
	root, err := r.tree(prefixes)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for key, leaf := range leaves(root, "") {
		e := Entry{Key: key, Origin: r.originOf(key)}
		if err := leaf.Decode(&e.Value); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrConfig, key, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// AnnotatedYAML returns the configuration as YAML for -c, with the origin of each value in
// a comment. A redacted value is null, which -c ignores.
func (r *Resolved) AnnotatedYAML(prefixes ...string) ([]byte, error) {
	root, err := r.tree(prefixes)
	if err != nil {
		return nil, err
	}
	for key, leaf := range leaves(root, "") {
		addComment(leaf, oneLine(r.originOf(key)))
		if leaf.Value == RedactedValue {
			leaf.Tag, leaf.Value, leaf.Style = "!!null", "null", 0
			leaf.LineComment = "not shown; " + leaf.LineComment
		}
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return b.Bytes(), enc.Close()
}

// originOf returns the origin of a key for the user.
func (r *Resolved) originOf(key string) string {
	if o, ok := r.origins[key]; ok && !o.IsBuiltin() {
		return o.String()
	}
	return "default"
}

// tree returns the redacted configuration, restricted to the prefixes.
func (r *Resolved) tree(prefixes []string) (*yaml.Node, error) {
	for _, p := range prefixes {
		if _, err := KeysUnder(p); err != nil {
			return nil, err
		}
	}
	root := &yaml.Node{}
	if err := root.Encode(r.Redacted().withDefaults()); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	if len(prefixes) > 0 {
		prune(root, "", prefixes)
		if len(root.Content) == 0 {
			return nil, &configError{fmt.Sprintf("%s is not set", clipKey(strings.Join(prefixes, ", ")))}
		}
	}
	return root, nil
}

// withDefaults replaces empty settings by the defaults that apply, for display. The
// built-in files do not contain these defaults, because mini compares runs by their
// settings as written.
func (c Config) withDefaults() Config {
	c.Agent.Protocol = cmp.Or(c.Agent.Protocol, protocol.Text)
	switch c.Agent.Protocol {
	case protocol.XML:
		c.Agent.ActionTag = cmp.Or(c.Agent.ActionTag, protocol.DefaultTag)
	case protocol.Tools:
		c.Agent.ToolCalls = cmp.Or(c.Agent.ToolCalls, "all")
	}
	c.Agent.Mode = cmp.Or(c.Agent.Mode, "confirm")
	c.Agent.Observation.Keep = cmp.Or(c.Agent.Observation.Keep, agent.KeepEnds)
	c.Model.Images = cmp.Or(c.Model.Images, "auto")
	if c.Model.Class == "anthropic" {
		c.Model.Cache = cmp.Or(c.Model.Cache, "5m")
	}
	return c
}

// prune removes the keys from a mapping that no prefix matches.
func prune(n *yaml.Node, path string, prefixes []string) {
	var selected []*yaml.Node
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		full := path + key.Value
		if !matchesPrefix(full, prefixes) {
			if value.Kind != yaml.MappingNode {
				continue
			}
			if prune(value, full+".", prefixes); len(value.Content) == 0 {
				continue
			}
		}
		selected = append(selected, key, value)
	}
	n.Content = selected
}

func matchesPrefix(key string, prefixes []string) bool {
	for _, p := range prefixes {
		if key == p || strings.HasPrefix(key, p+".") {
			return true
		}
	}
	return false
}

// leaves iterates over the values of nested mappings with their dotted keys. An empty
// mapping is a value. Lists are put on one line, so that a comment can follow them.
func leaves(n *yaml.Node, path string) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; i < len(n.Content); i += 2 {
			full, value := path+n.Content[i].Value, n.Content[i+1]
			if value.Kind == yaml.MappingNode && len(value.Content) > 0 {
				for k, v := range leaves(value, full+".") {
					if !yield(k, v) {
						return
					}
				}
				continue
			}
			if value.Kind == yaml.SequenceNode {
				onOneLine(value)
			}
			if !yield(full, value) {
				return
			}
		}
	}
}

// onOneLine puts a list on one line; a list of mappings has one line per item.
func onOneLine(list *yaml.Node) {
	if len(list.Content) == 0 || list.Content[0].Kind != yaml.MappingNode {
		list.Style |= yaml.FlowStyle
		return
	}
	for _, item := range list.Content {
		item.Style |= yaml.FlowStyle
	}
}

// addComment adds a comment to a value, or to each item of a list of mappings.
func addComment(leaf *yaml.Node, text string) {
	if leaf.Kind != yaml.SequenceNode || leaf.Style&yaml.FlowStyle != 0 {
		leaf.LineComment = text
		return
	}
	for _, item := range leaf.Content {
		item.LineComment = text
	}
}

// oneLine replaces unprintable characters, such as line breaks in file names, so that s is
// a valid comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
