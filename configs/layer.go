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

// shippedPrefix marks the names of layers that come with mini.
const shippedPrefix = "shipped:"

// profilesDir is where the profiles are that come with mini.
const profilesDir = "profiles"

//go:embed *.yaml profiles/*.yaml
var shipped embed.FS

// Layer is one source of settings, read and checked by itself.
type Layer struct {
	// Name is a file's path, or the flag as it was typed.
	Name string
	root *yaml.Node // a mapping; nil when empty
	line bool       // positions in it mean something to the user
}

// Shipped is one of the defaults that come with mini: "mini" for one task here,
// "swebench" for batches.
func Shipped(name string) (Layer, error) {
	data, err := shipped.ReadFile(name + ".yaml")
	if err != nil {
		return Layer{}, &mistake{fmt.Sprintf("there is no shipped configuration %q", name)}
	}
	return parse(shippedPrefix+name+".yaml", data, "")
}

// maxFile bounds a configuration file, and a prompt file it names.
const maxFile = 4 << 20

// ReadFile reads a YAML file. Prompt files it names are found from its folder.
// With a mistake in it comes the layer of what is right.
func ReadFile(path string) (Layer, error) {
	data, err := readBounded(path)
	if errors.Is(err, os.ErrNotExist) {
		return Layer{}, err // the caller may know another place
	}
	if err != nil {
		return Layer{}, &mistake{fmt.Sprintf("%s: %s", path, reason(err))}
	}
	return parse(path, data, filepath.Dir(path))
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the path is the user's own
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d MB", maxFile>>20)
	}
	return data, err
}

// reason is an error of the file system without the path, which is said already.
func reason(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "this user may not read it; chmod +r, or ask its owner"
	}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Setting is the layer of one value, given as a dotted key. The value is read
// as JSON where it is JSON, and as a string otherwise.
func Setting(name, key, value string) (Layer, error) {
	leaf := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	// JSON is taken for what it says, all else for a text; but for a list, whose
	// quotes a shell may have eaten: [bash, -c].
	if json.Valid([]byte(value)) || yamlList(value) || isMapping(key) && strings.HasPrefix(value, "{") {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(value), &doc); err == nil && len(doc.Content) == 1 {
			leaf = doc.Content[0]
		}
	}
	parts := strings.Split(key, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i] == "" {
			return Layer{}, &mistake{fmt.Sprintf("%s: the key has an empty part; write key.sub=value", name)}
		}
		leaf = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Tag: "!!str", Value: parts[i]}, leaf,
		}}
	}
	return finish(Layer{Name: name, root: leaf}, "")
}

func yamlList(value string) bool {
	return strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]")
}

// yamlPlace is how yaml begins its messages; the line may be missing.
var yamlPlace = lazyregexp.New(`^yaml: (?:line (\d+): )?`)

// decode reads the one document of a YAML text; nil where it is empty.
func decode(name string, data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil //nolint:nilnil // there is nothing in it
		}
		place := ""
		if m := yamlPlace.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			place = ":" + m[1]
		}
		return nil, &mistake{name + place + ": " + yamlPlace.ReplaceAllString(err.Error(), "")}
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &mistake{fmt.Sprintf("%s: a second document begins after the first; only one is read", name)}
	}
	if root := doc.Content[0]; root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil //nolint:nilnil // as above
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
	root, err := unalias(doc.Content[0], nil, new(int))
	if err != nil {
		return Layer{}, &mistake{fmt.Sprintf("%s:%d: %v", name, doc.Content[0].Line, err)}
	}
	return finish(Layer{Name: name, root: root, line: true}, dir)
}

// maxNodes bounds what aliases can make of a file.
const maxNodes = 100_000

// unalias puts a copy of what they stand for in the place of aliases, so that
// nothing else need know of them. above are the nodes around n.
func unalias(n *yaml.Node, above []*yaml.Node, count *int) (*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if *count++; *count > maxNodes {
		return nil, errors.New("too large once its aliases are followed")
	}
	if slices.Contains(above, n) {
		return nil, fmt.Errorf("the alias of &%s stands within what it names", n.Anchor)
	}
	clone := *n
	clone.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		var err error
		if clone.Content[i], err = unalias(c, append(above, n), count); err != nil {
			return nil, err
		}
	}
	return &clone, nil
}

// finish checks a layer against the schema and puts the texts of prompt files
// in their places. With an error comes the layer of what is right.
func finish(l Layer, dir string) (Layer, error) {
	moved := l.moveWhitelist()
	return l, joined(slices.Concat(All(l.check()), All(moved), l.readPrompts(dir)))
}

// whitelistKey is where mini-swe-agent has it under "agent".
const whitelistKey = "whitelist_actions"

// moveWhitelist puts the whitelist where the policy is.
func (l Layer) moveWhitelist() error {
	agent, policy := child(l.root, "agent"), child(l.root, "policy")
	list := child(agent, whitelistKey)
	if list == nil {
		return nil
	}
	at := slices.Index(agent.Content, list)
	key := agent.Content[at-1]
	agent.Content = slices.Delete(agent.Content, at-1, at+1)
	if policy == nil {
		policy = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: key.Line}
		l.root.Content = append(l.root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "policy", Line: key.Line}, policy)
	}
	if policy.Kind != yaml.MappingNode || child(policy, whitelistKey) != nil {
		return l.errorf(key, "agent.%s: it is policy.%s here, which is there too", whitelistKey, whitelistKey)
	}
	policy.Content = append(policy.Content, key, list)
	return nil
}

// readPrompts replaces {file: PATH}, where a template is asked for, by the
// file's text.
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
			errs = append(errs, l.errorf(node, "agent.%s: a text or {file: PATH} is needed", key))
			continue
		}
		path := file.Value
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		data, err := readBounded(path)
		if err != nil {
			errs = append(errs, l.errorf(file, "agent.%s: %s: %s", key, path, reason(err)))
			continue
		}
		agent.Content[i] = &yaml.Node{
			Kind: yaml.ScalarNode, Tag: "!!str", Value: string(data),
			Line: 1, HeadComment: path, // where the text is, for errors in it
		}
	}
	return errs
}

func isTemplate(key string) bool { return strings.HasSuffix(key, "_template") }

// child is the value of a key of a mapping; nil where there is none.
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

// errorf makes a mistake that names the layer, and the line where it has lines.
func (l Layer) errorf(at *yaml.Node, format string, args ...any) error {
	where := l.Name
	if l.line && at != nil && at.Line > 0 {
		where = fmt.Sprintf("%s:%d", l.Name, at.Line)
	}
	return &mistake{where + ": " + fmt.Sprintf(format, args...)}
}
