package configs

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/internal/lazyregexp"
)

// builtinPrefix is the prefix of the names of built-in layers.
const builtinPrefix = "shipped:"

// profilesDir is the directory of built-in profiles.
const profilesDir = "profiles"

//go:embed *.yaml profiles/*.yaml
var builtinFS embed.FS

// Layer is one source of settings, read and checked on its own.
type Layer struct {
	// Name is the path of a file, "shipped:" and a built-in file, or a flag or variable as
	// shown in messages.
	Name     string
	root     *yaml.Node // a mapping; nil when empty
	hasLines bool       // errors include line numbers
	// Vary has the settings that a sweep varies.
	Vary []Varied
	// isPeer marks a file with keys of mini-swe-agent; its templates are in Jinja.
	isPeer bool
	// unused are the settings of mini-swe-agent in the file that have no effect.
	unused []string
}

// ReadBuiltin returns a built-in configuration: "mini" for a single task, "swebench"
// for a dataset.
func ReadBuiltin(name string) (Layer, error) {
	data, err := builtinFS.ReadFile(name + ".yaml")
	if err != nil {
		return Layer{}, &configError{fmt.Sprintf("unknown built-in configuration %q", name)}
	}
	return parse(builtinPrefix+name+".yaml", data, "")
}

// IsBuiltin reports whether the layer is the built-in configuration of this name.
func (l Layer) IsBuiltin(name string) bool { return l.Name == builtinPrefix+name+yamlExt }

// ReadFile reads a YAML file. Paths of prompt files are relative to its directory. If
// settings are invalid, the layer contains the others.
func ReadFile(path string) (Layer, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the path is the user's own
	if errors.Is(err, os.ErrNotExist) {
		return Layer{}, err // the caller may try another path
	}
	if err != nil {
		return Layer{}, &configError{fmt.Sprintf("%s: %s", path, reason(err))}
	}
	return parse(path, data, filepath.Dir(path))
}

// reason returns a file system error without the path.
func reason(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "permission denied; run chmod +r, or ask its owner"
	}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// ParseSetting returns a layer with one value, given by its dotted key. The value is
// JSON, a list or mapping in YAML, or else a string. For a key whose values are
// strings, a mapping is a string, too.
func ParseSetting(name, key, value string) (Layer, error) {
	if key == varyKey || strings.HasPrefix(key, varyKey+".") {
		return Layer{}, &configError{name + ": only a file has the key vary; the flag is --vary KEY=A,B"}
	}
	return newSetting(Layer{Name: name}, key, settingNode(key, value), "")
}

// settingNode returns the value of a setting, see ParseSetting.
func settingNode(key, value string) *yaml.Node {
	leaf := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	// Parse JSON as such and all else as a string. A list may be YAML, because a shell
	// removes the quotes from JSON: [bash, -c].
	if json.Valid([]byte(value)) || isYAMLList(value) || strings.HasPrefix(value, "{") && !isText(key) {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(value), &doc); err == nil && len(doc.Content) == 1 {
			leaf = doc.Content[0]
		}
	}
	return leaf
}

// newSetting returns l with one value, given by its dotted key. The path of a prompt file
// is relative to dir.
func newSetting(l Layer, key string, leaf *yaml.Node, dir string) (Layer, error) {
	line := leaf.Line
	parts := strings.Split(key, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i] == "" {
			return Layer{}, &configError{fmt.Sprintf("%s: the key has an empty part; write key.sub=value", l.Name)}
		}
		leaf = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: line, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Tag: "!!str", Value: parts[i], Line: line}, leaf,
		}}
	}
	l.root = leaf
	return checkLayer(l, dir)
}

func isYAMLList(value string) bool {
	return strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]")
}

// yamlPrefix is the prefix of yaml errors; the line is optional.
var yamlPrefix = lazyregexp.New(`^yaml: (?:line (\d+): )?`)

// explainYAML adds what to do to the text of a syntax error.
func explainYAML(text string) string {
	switch {
	case strings.Contains(text, "cannot start any token"):
		return text + "; indent with spaces instead of tabs, and quote a value that begins with @, ` or %"
	case strings.Contains(text, "mapping values are not allowed"), strings.Contains(text, "did not find expected key"):
		return text + "; keys of one level begin in the same column (check this line and its neighbours); quote a value that contains \": \""
	case strings.Contains(text, "unexpected end of stream"):
		return text + "; close the quote or the bracket"
	}
	return text
}

// decode parses a YAML file with one document. It returns nil if the file is empty.
func decode(name string, data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil //nolint:nilnil // empty
		}
		line := ""
		if m := yamlPrefix.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			line = ":" + m[1]
		}
		return nil, &configError{name + line + ": " + explainYAML(yamlPrefix.ReplaceAllString(err.Error(), ""))}
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &configError{fmt.Sprintf("%s: it contains a second document; only one is allowed", name)}
	}
	if root := doc.Content[0]; root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil //nolint:nilnil // empty
	}
	return &doc, nil
}

func parse(name string, data []byte, dir string) (Layer, error) {
	doc, err := decode(name, data)
	if err != nil {
		return Layer{}, err
	}
	if doc == nil {
		return Layer{Name: name}, nil
	}
	root, err := resolveAliases(doc.Content[0], nil, new(int))
	if err != nil {
		return Layer{}, &configError{fmt.Sprintf("%s:%d: %v", name, doc.Content[0].Line, err)}
	}
	l := Layer{Name: name, root: root, hasLines: true}
	varyErr := l.takeVary(dir)
	l, err = checkLayer(l, dir)
	return l, join(slices.Concat(SplitErrors(err), SplitErrors(varyErr)))
}

// maxNodes limits the number of YAML nodes of a file after aliases are resolved.
const maxNodes = 100_000

// resolveAliases returns a copy of n with each alias replaced by a copy of its node.
// ancestors are the nodes above n; count counts the nodes of the copy.
func resolveAliases(n *yaml.Node, ancestors []*yaml.Node, count *int) (*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if *count++; *count > maxNodes {
		return nil, errors.New("too large after aliases are resolved")
	}
	if slices.Contains(ancestors, n) {
		return nil, fmt.Errorf("the alias of &%s refers to a node that contains it", n.Anchor)
	}
	clone := *n
	clone.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		var err error
		if clone.Content[i], err = resolveAliases(c, append(ancestors, n), count); err != nil {
			return nil, err
		}
	}
	return &clone, nil
}

// checkLayer checks a layer against the schema and reads its prompt files. If there
// are errors, the returned layer contains the valid settings.
func checkLayer(l Layer, dir string) (Layer, error) {
	adoptErr := l.adopt()
	engine, engineErr := l.takeEngine()
	errs := slices.Concat(SplitErrors(l.check()), SplitErrors(adoptErr), SplitErrors(engineErr), l.readPrompts(dir))
	l.setEngine(engine)
	return l, join(errs)
}

// readPrompts replaces {file: PATH} as the value of a template by the content of the
// file. PATH is relative to dir.
func (l Layer) readPrompts(dir string) []error {
	var errs []error
	agent := child(l.root, "agent")
	if agent == nil || agent.Kind != yaml.MappingNode {
		return nil
	}
	for i := 1; i < len(agent.Content); i += 2 {
		key, node := agent.Content[i-1].Value, agent.Content[i]
		if !isTemplate(key) || node.Kind != yaml.MappingNode {
			continue
		}
		file := child(node, "file")
		if file == nil || len(node.Content) != 2 || file.Kind != yaml.ScalarNode {
			errs = append(errs, l.errorf(node, "agent.%s: it must be a string or {file: PATH}", key))
			continue
		}
		path := file.Value
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		data, err := os.ReadFile(path) //nolint:gosec // the user chose the path
		if err != nil {
			errs = append(errs, l.errorf(file, "agent.%s: %s: %s", key, path, reason(err)))
			continue
		}
		agent.Content[i] = &yaml.Node{
			Kind: yaml.ScalarNode, Tag: "!!str", Value: string(data),
			Line: 1, HeadComment: path, // the location for errors; see newOrigin
		}
	}
	return errs
}

func isTemplate(key string) bool { return strings.HasSuffix(key, "_template") }

// child returns the value of a key of a mapping, or nil if the key is missing.
func child(m *yaml.Node, key string) *yaml.Node {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 1; i < len(m.Content); i += 2 {
		if m.Content[i-1].Value == key {
			return m.Content[i]
		}
	}
	return nil
}

// nodeAt returns the value of a dotted key below m, or nil if the key is missing.
func nodeAt(m *yaml.Node, key string) *yaml.Node {
	for part := range strings.SplitSeq(key, ".") {
		m = child(m, part)
	}
	return m
}

// node returns the value of a dotted key of the layer, or nil.
func (l Layer) node(key string) *yaml.Node { return nodeAt(l.root, key) }

// Value returns the text of a scalar setting of the layer; "" if the layer does not have it.
func (l Layer) Value(key string) string {
	if n := l.node(key); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// errorf returns an error with the layer's name and, if it has lines, the line.
func (l Layer) errorf(n *yaml.Node, format string, args ...any) error {
	location := l.Name
	if l.hasLines && n != nil && n.Line > 0 {
		location = fmt.Sprintf("%s:%d", l.Name, n.Line)
	}
	return &configError{location + ": " + fmt.Sprintf(format, args...)}
}
