package submission

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/minibench/mini/internal/text"
)

//go:embed README.md.tmpl
var readme string

//go:embed metadata.yaml.tmpl
var metadataTemplate string

// writeTexts writes the files that the user completes.
func (c Config) writeTexts(dir string, r Result) error {
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
	var b strings.Builder
	var missing []string
	for label, ids := range map[string][]string{
		"no prediction": r.NoResult, "no trajectory": r.NoTraj, "no verdict": r.NoVerdict,
	} {
		if len(ids) > 0 {
			missing = append(missing, fmt.Sprintf("%s: %s", label, strings.Join(ids, ", ")))
		}
	}
	slices.Sort(missing)
	m := c.Run.Manifest
	err = t.Execute(&b, map[string]any{
		"Name": text.OneLine(c.Name), "Results": indent(c.Results), "Missing": missing, "Model": text.OneLine(model),
		"Dataset": text.OneLine(m.Dataset.Name), "Version": text.OneLine(m.MiniVersion), "RunID": text.OneLine(c.RunID),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "README.md"), []byte(b.String()), 0o644) //nolint:gosec // results are for sharing
}

// metadata returns the contents of metadata.yaml. TODO marks the values that the
// user has to fill in.
func metadata(name, model string) ([]byte, error) {
	t, err := template.New("metadata.yaml").Parse(metadataTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]string{"Name": quoted(name), "Model": quoted(model)})
	return b.Bytes(), err
}

// quoted returns a JSON string, which is also valid YAML.
func quoted(s string) string {
	data, err := json.Marshal(s)
	if err != nil { // strings always encode
		return `""`
	}
	return string(data)
}

// indent formats text as a Markdown code block.
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
