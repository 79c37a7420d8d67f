package configs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// varyKey is the top-level key of a file with the settings that a sweep varies: a
// mapping from dotted keys to lists of values. It is not a setting of a run, so that
// Config does not have it.
const varyKey = "vary"

// Varied is a setting and the values that a sweep gives to it.
type Varied struct {
	Key    string
	Values []VariedValue
	// Origin is where the values are: FILE:LINE, or the flag.
	Origin string
}

// VariedValue is one value of a varied setting.
type VariedValue struct {
	Text  string // the value in YAML's notation of a scalar, or JSON of a list or mapping
	Layer Layer  // sets the setting to the value
}

// ParseVaried parses the value of --vary: KEY=A,B. It reads each value as ParseSetting
// does.
func ParseVaried(arg string) (Varied, error) {
	key, list, ok := strings.Cut(arg, "=")
	if !ok || key == "" || list == "" {
		return Varied{}, &configError{fmt.Sprintf("--vary %s: it takes KEY=A,B", clipKey(arg))}
	}
	origin := "--vary " + clipKey(key)
	v := Varied{Key: key, Origin: origin}
	for text := range strings.SplitSeq(list, ",") {
		if text == "" || strings.ContainsRune("[{", rune(text[0])) && !isYAMLList(text) && !json.Valid([]byte(text)) {
			return v, &configError{origin + ": a value is empty or contains a comma; the list vary in a file of -c can have such values"}
		}
		leaf := settingNode(key, text)
		layer, err := newSetting(Layer{Name: "--vary " + settingLabel(key, text)}, key, leaf, "")
		if err != nil {
			return v, err
		}
		v.Values = append(v.Values, VariedValue{valueText(leaf), layer})
	}
	return v, v.check()
}

// takeVary moves the key "vary" of a file to l.Vary. Paths of prompt files are relative
// to dir.
func (l *Layer) takeVary(dir string) error {
	node := child(l.root, varyKey)
	if node == nil {
		return nil
	}
	i := slices.Index(l.root.Content, node)
	l.root.Content = slices.Delete(l.root.Content, i-1, i+1)
	if node.Kind != yaml.MappingNode {
		return l.errorf(node, "%s: it must be a mapping from keys to lists of values, not %s", varyKey, describe(node))
	}
	var errs []error
	for i := 0; i < len(node.Content) && len(errs) < maxErrors; i += 2 {
		key, list := node.Content[i], node.Content[i+1]
		if list.Kind != yaml.SequenceNode {
			errs = append(errs, l.errorf(list, "%s.%s: it must be a list of values, not %s", varyKey, clipKey(key.Value), describe(list)))
			continue
		}
		v := Varied{Key: key.Value, Origin: fmt.Sprintf("%s:%d: %s.%s", l.Name, key.Line, varyKey, clipKey(key.Value))}
		var invalid []error
		for _, leaf := range list.Content {
			if leaf.Tag == "!!null" {
				invalid = []error{l.errorf(leaf, "%s.%s: null is not a value", varyKey, clipKey(key.Value))}
				break
			}
			value := VariedValue{Text: valueText(leaf)} // before the check, which may change the node
			var err error
			if value.Layer, err = newSetting(Layer{Name: l.Name, hasLines: true}, key.Value, leaf, dir); err != nil {
				invalid = SplitErrors(err)
				break
			}
			v.Values = append(v.Values, value)
		}
		if len(invalid) == 0 {
			invalid = SplitErrors(v.check())
		}
		if errs = append(errs, invalid...); len(invalid) == 0 {
			l.Vary = append(l.Vary, v)
		}
	}
	return join(errs)
}

// check returns an error if there is no value, or one is given twice.
func (v Varied) check() error {
	seen := map[string]bool{}
	for _, value := range v.Values {
		if seen[value.Text] {
			return &configError{fmt.Sprintf("%s: the value %.60q is given twice", v.Origin, value.Text)}
		}
		seen[value.Text] = true
	}
	if len(seen) == 0 {
		return &configError{v.Origin + ": it has no values"}
	}
	return nil
}

// valueText returns the text of a scalar, the path of {file: PATH}, or else JSON.
func valueText(n *yaml.Node) string {
	if file := child(n, "file"); file != nil && len(n.Content) == 2 {
		n = file
	}
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return err.Error()
	}
	text, err := json.Marshal(value)
	if err != nil { // a mapping with keys that are not strings
		return fmt.Sprint(value)
	}
	return string(text)
}

// Vary returns the settings that the layers vary. A layer replaces the values of the
// layers below it.
func (o *Overlay) Vary() []Varied {
	var all []Varied
	for _, l := range o.layers {
		for _, v := range l.Vary {
			all = v.AddTo(all)
		}
	}
	return all
}

// AddTo returns all with v. It replaces the values of the same setting, in their place.
func (v Varied) AddTo(all []Varied) []Varied {
	if i := slices.IndexFunc(all, func(o Varied) bool { return o.Key == v.Key }); i >= 0 {
		all[i] = v
		return all
	}
	return append(all, v)
}

// Keys returns the dotted keys of the settings that the layer has.
func (l Layer) Keys() []string {
	var keys []string
	for key := range leaves(l.root, "") {
		keys = append(keys, key)
	}
	return keys
}

// IsSet reports whether a setting, or one below it, has a value from a layer for which
// from is true. It returns the origin of the value.
func (o *Overlay) IsSet(key string, from func(layer string) bool) (Origin, bool) {
	for _, k := range slices.Sorted(maps.Keys(o.origins)) {
		if origin := o.origins[k]; (k == key || strings.HasPrefix(k, key+".") || strings.HasPrefix(key, k+".")) && from(origin.Layer) {
			return origin, true
		}
	}
	return Origin{}, false
}
