package submission

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"gopkg.in/yaml.v3"
)

//go:embed README.md.tmpl
var readme string

// words writes what people are to fill in.
func (c Config) words(dir string, r Result) error {
	model := c.Run.Manifest.Model.Name
	data, err := metadata(c.Name, model)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "metadata.yaml"), data, 0o644); err != nil { //nolint:gosec // results are for sharing
		return err
	}
	t, err := template.New("README.md").Parse(readme)
	if err != nil {
		return err
	}
	var text strings.Builder
	var missing []string
	for what, ids := range map[string][]string{
		"no prediction": r.NoResult, "no trajectory": r.NoTraj, "no verdict": r.NoVerdict,
	} {
		if len(ids) > 0 {
			missing = append(missing, fmt.Sprintf("%s: %s", what, strings.Join(ids, ", ")))
		}
	}
	slices.Sort(missing)
	m := c.Run.Manifest
	err = t.Execute(&text, map[string]any{
		"Name": oneLine(c.Name), "Results": indent(c.Results), "Missing": missing, "Model": oneLine(model),
		"Dataset": oneLine(m.Dataset.Name), "Version": oneLine(m.MiniVersion), "RunID": oneLine(c.RunID),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "README.md"), []byte(text.String()), 0o644) //nolint:gosec // results are for sharing
}

// TODO marks what mini cannot know.
const todo = "TODO"

// metadata is metadata.yaml: in the form that the leaderboard asks for today
// (info and tags), below the four keys of its first years, which tools still
// read.
func metadata(name, model string) ([]byte, error) {
	type pair struct {
		key   string
		value any
		about string
	}
	node := func(pairs []pair) (*yaml.Node, error) {
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, p := range pairs {
			value, ok := p.value.(*yaml.Node)
			if !ok {
				value = &yaml.Node{}
				if err := value.Encode(p.value); err != nil {
					return nil, err
				}
			}
			key := &yaml.Node{Kind: yaml.ScalarNode, Value: p.key}
			if value.Kind == yaml.ScalarNode {
				value.LineComment = p.about
			} else {
				key.HeadComment = p.about
			}
			n.Content = append(n.Content, key, value)
		}
		return n, nil
	}
	info, err := node([]pair{
		{"name", name, todo + ": what the table shows"},
		{"site", todo, "a page about the system"},
		{"report", todo, "a technical report or an article"},
		{"authors", todo, ""},
		{"logo", todo, "address of a picture"},
	})
	if err != nil {
		return nil, err
	}
	system, err := node([]pair{{"attempts", "1", "2+ where the system itself chose among several"}})
	if err != nil {
		return nil, err
	}
	tags, err := node([]pair{
		{"model", []string{model}, ""},
		{"org", todo, ""},
		{"os_model", false, todo + ": are the weights open?"},
		{"os_system", false, todo + ": is the system's code open?"},
		{"checked", false, "set by the maintainers"},
		{"system", system, ""},
	})
	if err != nil {
		return nil, err
	}
	all, err := node([]pair{
		{"name", name, todo},
		{"oss", false, todo + ": is the system's code open?"},
		{"site", todo, ""},
		{"verified", false, "set by the maintainers"},
		{"info", info, ""},
		{"tags", tags, ""},
	})
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(all)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// indent makes text a block of Markdown that is shown as it is.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}
