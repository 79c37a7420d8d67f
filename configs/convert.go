package configs

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent"
)

// Convert returns a configuration file of mini-swe-agent as a file of mini, with Go
// templates. A template that cannot be translated stays in Jinja. notes say what was left
// out, what stays in Jinja, and what differs.
func Convert(path string) (data []byte, notes []string, err error) {
	l, err := ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	if len(l.Vary) > 0 {
		return nil, nil, &configError{path + ": it has the key vary, so it is a file of mini already"}
	}
	if l.root == nil {
		return nil, nil, nil
	}
	for _, unused := range l.unused {
		notes = append(notes, "left out: "+unused)
	}
	notes = append(notes, l.convertPrompts()...)
	notes = append(notes, l.dropSecrets()...)
	dropEmpty(l.root)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	err = errors.Join(enc.Encode(l.root), enc.Close())
	return b.Bytes(), notes, err
}

// convertPrompts translates the templates that are in Jinja.
func (l *Layer) convertPrompts() (notes []string) {
	prompts := l.prompts()
	engines := child(child(l.root, "agent"), engineKey)
	for _, name := range slices.Sorted(maps.Keys(prompts)) {
		p := prompts[name]
		p.HeadComment = "" // it may be the path of the prompt's file
		if engine := child(engines, name); engine == nil || engine.Value != agent.EngineJinja {
			removeKey(engines, name)
			continue
		}
		text, limits, differences, err := agent.GoTemplate(name, p.Value)
		if err != nil {
			if field, ok := errors.AsType[*agent.FieldError](err); ok {
				if err = field.Err; field.Line > 0 {
					err = fmt.Errorf("line %d: %w", field.Line, err)
				}
			}
			notes = append(notes, fmt.Sprintf("agent.%s stays in Jinja: %v", name, err))
			continue
		}
		p.Value = text
		removeKey(engines, name)
		for _, d := range differences {
			notes = append(notes, fmt.Sprintf("agent.%s: %s", name, d))
		}
		if limits != nil && child(child(l.root, "agent"), "observation") == nil {
			var o yaml.Node
			if err := o.Encode(map[string]int{"max_chars": limits.MaxChars, "head_chars": limits.HeadChars, "tail_chars": limits.TailChars}); err != nil {
				notes = append(notes, err.Error())
				continue
			}
			l.set("agent", "observation", &o)
		}
	}
	for _, p := range prompts {
		p.Style = 0
		if strings.ContainsRune(p.Value, '\n') {
			p.Style = yaml.LiteralStyle
		}
	}
	if len(keysOf(engines)) == 0 {
		removeKey(child(l.root, "agent"), engineKey)
	}
	return notes
}

// dropSecrets removes the values that are keys by their names.
func (l *Layer) dropSecrets() (notes []string) {
	for _, section := range []string{"environment.env", "model.model_kwargs"} {
		first, second, _ := strings.Cut(section, ".")
		values := child(child(l.root, first), second)
		for _, key := range keysOf(values) {
			if LooksSecret(key) {
				removeKey(values, key)
				notes = append(notes, fmt.Sprintf("left out: %s.%s: keys belong in %s; environment.forward_env passes a variable to the sandbox", section, clipKey(key), "~/.config/mini/.env"))
			}
		}
	}
	return notes
}

// dropEmpty removes mappings without keys, such as those whose keys were left out.
func dropEmpty(m *yaml.Node) {
	for _, key := range keysOf(m) {
		value := child(m, key)
		dropEmpty(value)
		if value.Kind == yaml.MappingNode && len(value.Content) == 0 {
			removeKey(m, key)
		}
	}
}
