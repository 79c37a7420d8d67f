package configs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Resolved is a configuration with the place each value came from.
type Resolved struct {
	Config
	layers  []Layer
	origins map[string]Origin // by dotted key
	// entry is where in a route the section model is from, as
	// "model.route.models[0]", or "model.summary"; empty outside of one.
	entry string
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
// Values that make no sense are an error, beside which the result is returned
// all the same.
func Merge(layers ...Layer) (*Resolved, error) {
	r := &Resolved{layers: layers, origins: map[string]Origin{}}
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

// With is the configuration with more layers on top of those it was merged from.
// What somebody changed in it since is not part of it.
func (r *Resolved) With(layers ...Layer) (*Resolved, error) {
	return Merge(slices.Concat(r.layers, layers)...)
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
		r.items(full, value, l)
		if old != nil {
			*old = *value
			continue
		}
		clone := *value
		into.Content = append(into.Content, key, &clone)
	}
}

// items notes where the keys of a list's items are, in place of those of a list
// that another layer had.
func (r *Resolved) items(key string, list *yaml.Node, l Layer) {
	if list.Kind != yaml.SequenceNode {
		return
	}
	maps.DeleteFunc(r.origins, func(known string, _ Origin) bool { return strings.HasPrefix(known, key+"[") })
	for i, item := range list.Content {
		if item.Kind != yaml.MappingNode {
			continue
		}
		name := fmt.Sprintf("%s[%d]", key, i)
		r.origins[name] = origin(l, item)
		for j := 1; j < len(item.Content); j += 2 {
			r.origins[name+"."+item.Content[j-1].Value] = origin(l, item.Content[j])
		}
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

// startupKey is the one template outside of the agent's section.
const startupKey = "run.env_startup_command"

// SetBaseURL gives the section model an address that a layer of this name has.
func (r *Resolved) SetBaseURL(layer, address string) {
	r.Model.BaseURL = address
	r.origins["model.base_url"] = Origin{Layer: layer, text: -1}
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
		key = startupKey
	}
	return &mistake{fmt.Sprintf("%s%s: %v%s", r.place(key, field.Line), key, field.Err, dotless(key, field.Err))}
}

var undefined = lazyregexp.New(`function "(\w+)" not defined`)

// dotless adds to what text/template says of {{name}}, which it takes for a
// function.
func dotless(key string, err error) string {
	m := undefined.FindStringSubmatch(err.Error())
	switch {
	case m == nil:
		return ""
	case m[1] == "length":
		return "; it is len, before its value: {{len .list}}"
	case key == startupKey:
		return fmt.Sprintf("; a column of the row is {{.instance.%s}}", m[1])
	}
	return fmt.Sprintf("; variables begin with a dot: {{.%s}}", m[1])
}

// place is where a key was set, as a message begins with it: line counts from
// 1 within the text of a template, 0 is the key itself. It is empty for a key
// nobody set.
func (r *Resolved) place(key string, line int) string {
	o, ok := r.origins[key]
	if !ok {
		o, ok = r.below(key)
	}
	if !ok {
		return ""
	}
	if line > 0 && o.text >= 0 {
		o.Line = o.text + line
	}
	return o.String() + ": "
}

// below is where the user set the first of the keys under a section.
func (r *Resolved) below(section string) (Origin, bool) {
	for _, key := range slices.Sorted(maps.Keys(r.origins)) {
		if o := r.origins[key]; strings.HasPrefix(key, section+".") && !o.Shipped() {
			return o, true
		}
	}
	return Origin{}, false
}

// errorf is a mistake in the value of a key.
func (r *Resolved) errorf(key, format string, args ...any) error {
	if own, ok := strings.CutPrefix(key, "model."); ok && r.entry != "" {
		at := routeKey + ".models"
		if r.entry == summaryKey {
			at = summaryKey + "." + own
		}
		return &mistake{r.place(at, 0) + r.entry + "." + own + ": " + fmt.Sprintf(format, args...)}
	}
	return &mistake{r.at(key) + fmt.Sprintf(format, args...)}
}

// at begins a message about a key: where it was set, and the key. One that -c set
// is said once.
func (r *Resolved) at(key string) string {
	place := r.place(key, 0)
	if list, _, ok := strings.Cut(key, "["); ok && place == "" {
		place = r.place(list, 0)
	}
	flag := strings.TrimSuffix(place, ": ")
	if rest, ok := strings.CutPrefix("-c "+key, flag); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && flag != "" {
		return "-c " + key + ": "
	}
	return place + key + ": "
}

// ShippedProfile reports whether a value is from a profile that comes with mini.
func (o Origin) ShippedProfile() bool { return strings.HasPrefix(o.Layer, profilePrefix) }

// Shipped says that a value is mini's own default.
func (o Origin) Shipped() bool { return strings.HasPrefix(o.Layer, shippedPrefix) }
