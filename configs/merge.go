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

// Resolved is a merged configuration with the origin of each value.
type Resolved struct {
	Config
	layers  []Layer
	origins map[string]Origin // by dotted key
	// section is the key of the section that was merged into Config.Model, for example
	// "model.route.models[0]" or "model.summary"; empty if none was.
	section string
	// key is the model's key for requests to keyURL; nil: that of the environment.
	key    *string
	keyURL string
}

// Origin is where a value was set.
type Origin struct {
	Layer string
	Line  int // 0 if the layer has no lines
	text  int // added to a line of the template's text to get the line of the file; -1 if unknown
}

// String returns FILE:LINE, or the layer's name.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Layer
	}
	return fmt.Sprintf("%s:%d", o.Layer, o.Line)
}

// Overlay is layers laid over each other, later ones over earlier ones. Its values are neither decoded
// nor checked, so that a command can read some of them before it adds the layers that they imply.
type Overlay struct {
	layers  []Layer
	root    *yaml.Node
	origins map[string]Origin // by dotted key
}

// NewOverlay returns the overlay of layers. It merges mappings key by key and replaces other values
// as a whole; a null changes nothing.
func NewOverlay(layers ...Layer) *Overlay {
	o := &Overlay{layers: layers, root: &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, origins: map[string]Origin{}}
	for _, l := range layers {
		if l.root != nil && l.root.Kind == yaml.MappingNode { // the check of the layer has reported others
			o.merge(o.root, l.root, l, "")
		}
	}
	return o
}

// Trace is for tests, which count the calls: it is called with "check" when a configuration is checked,
// and with "dotenv" when .env files are read, unless it is nil.
var Trace func(event string)

func trace(event string) {
	if Trace != nil {
		Trace(event)
	}
}

// Check decodes and checks the values. If some are invalid, it returns the result with the error.
func (o *Overlay) Check() (*Resolved, error) {
	trace("check")
	r := &Resolved{layers: o.layers, origins: o.origins}
	if err := o.root.Decode(&r.Config); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return r, r.validate()
}

// Merge checks the overlay of layers.
func Merge(layers ...Layer) (*Resolved, error) { return NewOverlay(layers...).Check() }

// With merges more layers on top of the layers of r. It ignores changes that were made
// to r.Config after the merge.
func (r *Resolved) With(layers ...Layer) (*Resolved, error) {
	return Merge(slices.Concat(r.layers, layers)...)
}

// Value returns the text of a scalar setting; "" if no layer sets it.
func (o *Overlay) Value(key string) string {
	if n := nodeAt(o.root, key); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// Decode decodes a setting or a section. It leaves into as it is if no layer sets the key.
func (o *Overlay) Decode(key string, into any) error {
	n := nodeAt(o.root, key)
	if n == nil {
		return nil
	}
	if err := n.Decode(into); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrConfig, key, err)
	}
	return nil
}

// Origin returns where a key was set; ok is false if it was not set.
func (o *Overlay) Origin(key string) (origin Origin, ok bool) {
	origin, ok = o.origins[key]
	return origin, ok
}

func (o *Overlay) merge(into, from *yaml.Node, l Layer, path string) {
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
			o.merge(old, value, l, full+".")
			continue
		}
		o.origins[full] = newOrigin(l, value)
		o.recordItems(full, value, l)
		if old != nil {
			*old = *value
			continue
		}
		clone := *value
		into.Content = append(into.Content, key, &clone)
	}
}

// recordItems records the origins of the keys in a list's items. It first removes the
// origins of the items of the list that this list replaces.
func (o *Overlay) recordItems(key string, list *yaml.Node, l Layer) {
	if list.Kind != yaml.SequenceNode {
		return
	}
	maps.DeleteFunc(o.origins, func(known string, _ Origin) bool { return strings.HasPrefix(known, key+"[") })
	for i, item := range list.Content {
		if item.Kind != yaml.MappingNode {
			continue
		}
		name := fmt.Sprintf("%s[%d]", key, i)
		o.origins[name] = newOrigin(l, item)
		for j := 1; j < len(item.Content); j += 2 {
			o.origins[name+"."+item.Content[j-1].Value] = newOrigin(l, item.Content[j])
		}
	}
}

func newOrigin(l Layer, value *yaml.Node) Origin {
	switch {
	case value.HeadComment != "" && value.Line == 1 && value.Column == 0: // readPrompts puts the path of a prompt's file here
		return Origin{Layer: value.HeadComment, Line: 1}
	case !l.hasLines:
		return Origin{Layer: l.Name, text: -1}
	case value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return Origin{Layer: l.Name, Line: value.Line, text: value.Line}
	default:
		return Origin{Layer: l.Name, Line: value.Line, text: value.Line - 1}
	}
}

// Origin returns where a key was set; ok is false if it was not set.
func (r *Resolved) Origin(key string) (Origin, bool) {
	o, ok := r.origins[key]
	return o, ok
}

// UserOrigin returns where the user set a key, or for a mapping the first key in it. ok is
// false if the value is mini's default.
func (r *Resolved) UserOrigin(key string) (o Origin, ok bool) {
	if o, ok = r.origins[key]; ok {
		return o, !o.IsBuiltin()
	}
	return r.firstBelow(key)
}

// startupKey is the only template outside the section "agent".
const startupKey = "run.env_startup_command"

// SetBaseURL sets model.base_url, with the given layer as its origin.
func (r *Resolved) SetBaseURL(layer, address string) {
	r.Model.BaseURL = address
	r.origins["model.base_url"] = Origin{Layer: layer, text: -1}
}

// Locate adds the file and the line to an *agent.FieldError. It returns other errors
// unchanged.
func (r *Resolved) Locate(err error) error {
	field, ok := errors.AsType[*agent.FieldError](err)
	if !ok {
		return err
	}
	key := "agent." + field.Field
	if field.Field == "env_startup_command" {
		key = startupKey
	}
	return &configError{fmt.Sprintf("%s%s: %v%s", r.location(key, field.Line), key, field.Err, missingDotHint(key, field.Err))}
}

var undefinedFunction = lazyregexp.New(`function "(\w+)" not defined`)

// missingDotHint returns a hint for the error of text/template about {{name}}, which
// text/template takes for a function; "" for other errors.
func missingDotHint(key string, err error) string {
	m := undefinedFunction.FindStringSubmatch(err.Error())
	switch {
	case m == nil:
		return ""
	case m[1] == "length":
		return "; use len before the value: {{len .list}}"
	case key == startupKey:
		return fmt.Sprintf("; a column of the row is {{.instance.%s}}", m[1])
	}
	return fmt.Sprintf("; variables start with a dot: {{.%s}}; for Jinja set agent.template_engine: jinja", m[1])
}

// location returns the prefix of a message: where a key was set; "" for an unset key.
// line is a line in the text of a template, from 1, or 0 for the key itself.
func (r *Resolved) location(key string, line int) string {
	o, ok := r.origins[key]
	if !ok {
		o, ok = r.firstBelow(key)
	}
	if !ok {
		return ""
	}
	if line > 0 && o.text >= 0 {
		o.Line = o.text + line
	}
	return o.String() + ": "
}

// firstBelow returns the origin of the alphabetically first key in a section that the
// user set.
func (r *Resolved) firstBelow(section string) (Origin, bool) {
	for _, key := range slices.Sorted(maps.Keys(r.origins)) {
		if o := r.origins[key]; strings.HasPrefix(key, section+".") && !o.IsBuiltin() {
			return o, true
		}
	}
	return Origin{}, false
}

// errorf returns an error about the value of a key.
func (r *Resolved) errorf(key, format string, args ...any) error {
	if name, ok := strings.CutPrefix(key, "model."); ok && r.section != "" {
		located := routeKey + ".models"
		if r.section == summaryKey {
			located = summaryKey + "." + name
		}
		return &configError{r.location(located, 0) + r.section + "." + name + ": " + fmt.Sprintf(format, args...)}
	}
	return &configError{r.keyPrefix(key) + fmt.Sprintf(format, args...)}
}

// keyPrefix returns the prefix of a message: where a key was set, and the key. If -c set
// the key, the location contains it and keyPrefix does not repeat it.
func (r *Resolved) keyPrefix(key string) string {
	location := r.location(key, 0)
	if list, _, ok := strings.Cut(key, "["); ok && location == "" {
		location = r.location(list, 0)
	}
	flag := strings.TrimSuffix(location, ": ")
	if rest, ok := strings.CutPrefix("-c "+key, flag); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && flag != "" {
		return "-c " + key + ": "
	}
	return location + key + ": "
}

// IsBuiltinProfile reports whether a value comes from a built-in profile.
func (o Origin) IsBuiltinProfile() bool { return strings.HasPrefix(o.Layer, profilePrefix) }

// IsBuiltin reports whether a value is a built-in default.
func (o Origin) IsBuiltin() bool { return strings.HasPrefix(o.Layer, builtinPrefix) }
