package skills

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/internal/lazyregexp"
)

// parser parses one SKILL.md and collects its problems.
type parser struct {
	skill    Skill
	problems []Problem // without File
}

// Parse parses the content of a SKILL.md. folder is the name of the skill's
// directory. The problems of a valid skill are only warnings.
func Parse(folder string, data []byte) (Skill, []Problem) {
	p := &parser{}
	if head, text, textLine, ok := p.split(data); ok {
		p.skill.Text = text
		p.checkText(text, textLine)
		p.parseFrontMatter(folder, head)
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return a.Line - b.Line })
	for i := range p.problems {
		p.problems[i].Skill = folder
	}
	return p.skill, p.problems
}

func (p *parser) addError(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (p *parser) addWarning(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{Line: line, Text: fmt.Sprintf(format, args...), Warning: true})
}

// split separates the front matter (head), which begins in line 2 of the file,
// from the text, which begins in line textLine.
func (p *parser) split(data []byte) (head, text string, textLine int, ok bool) {
	if len(data) > MaxText {
		p.addError(0, "larger than %d KB; move parts of it to files in references/", MaxText>>10)
		return "", "", 0, false
	}
	if !utf8.Valid(data) {
		p.addError(0, "not valid UTF-8")
		return "", "", 0, false
	}
	content := strings.TrimPrefix(string(data), "\ufeff")
	content = strings.ReplaceAll(content, "\r\n", "\n")
	first, rest, _ := strings.Cut(content, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		p.addError(1, "the first line must be ---, followed by front matter with name and description")
		return "", "", 0, false
	}
	textLine = 2
	for line := range strings.Lines(rest) {
		textLine++
		if strings.TrimRight(line, " \t\n") == "---" {
			return head, rest[len(head)+len(line):], textLine, true
		}
		if head += line; len(head) > MaxFrontMatter {
			p.addError(1, "the front matter is larger than %d KB, or the closing line --- is missing", MaxFrontMatter>>10)
			return "", "", 0, false
		}
	}
	p.addError(1, "the line --- that closes the front matter is missing")
	return "", "", 0, false
}

func (p *parser) checkText(text string, at int) {
	if strings.TrimSpace(text) == "" {
		p.addError(at, "the text after the front matter is missing")
	}
	if line, char, found := findUnsafe(text); found {
		p.addError(at+line-1, "the text contains the unsafe character %U", char)
	}
	const maxLines = 500
	if n := strings.Count(text, "\n"); n > maxLines {
		p.addWarning(at, "the text has %d lines; move parts of it to files in references/ to keep it below %d", n, maxLines)
	}
}

// yamlLine matches the beginning of an error message of package yaml.
var yamlLine = lazyregexp.New(`^yaml: (?:line (\d+): )?`)

func (p *parser) parseFrontMatter(folder, head string) {
	if line, char, found := findUnsafe(head); found {
		p.addError(line+1, "the front matter contains the unsafe character %U", char)
		return
	}
	var doc yaml.Node
	if err := decodeYAML(head, &doc); err != nil {
		line := 1
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			line, _ = strconv.Atoi(m[1]) // the pattern matched digits
		}
		text := yamlLine.ReplaceAllString(err.Error(), "")
		if strings.Contains(text, "mapping values are not allowed") {
			text += `; quote a value that contains ": "`
		}
		p.addError(line+1, "%.300s", text)
		return
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		p.addError(2, "the front matter has no keys; add name and description")
		return
	}
	p.parseFields(folder, doc.Content[0])
}

// decodeYAML calls yaml.Unmarshal and turns panics into errors, because the
// file is untrusted.
func decodeYAML(text string, dest *yaml.Node) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("invalid YAML")
		}
	}()
	return yaml.Unmarshal([]byte(text), dest)
}

func (p *parser) parseFields(folder string, n *yaml.Node) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		line := key.Line + 1
		if key.Kind != yaml.ScalarNode {
			p.addError(line, "a key is not a string")
			continue
		}
		if first, exists := seen[key.Value]; exists {
			p.addError(line, "duplicate key %.60q; the first is in line %d", key.Value, first)
			continue
		}
		seen[key.Value] = line
		p.parseField(folder, key.Value, line, value)
	}
	for _, needed := range []string{"name", "description"} {
		if seen[needed] == 0 {
			p.addError(1, "%s is missing", needed)
		}
	}
}

// keys are the keys of the front matter.
var keys = []string{"name", "description", "version", "allowed-tools", "license", "compatibility", "metadata"}

func (p *parser) parseField(folder, key string, line int, value *yaml.Node) {
	s := &p.skill
	texts := map[string]*string{
		"name": &s.Name, "description": &s.Description,
		"version": &s.Version, "license": &s.License, "compatibility": &s.Compatibility,
	}
	dest, isText := texts[key]
	switch {
	case key == "allowed-tools":
		p.parseAllowedTools(line, value)
		return
	case key == "metadata":
		p.parseMetadata(line, value)
		return
	case !isText:
		text := fmt.Sprintf("unknown key %.60q", key)
		if near := tools.Nearest(key, keys); near != "" {
			text += "; did you mean " + near + "?"
		}
		p.addWarning(line, "%s", text)
		return
	}
	text, ok := p.scalar(key, line, value)
	if *dest = oneLine(text); !ok {
		return
	}
	limit := MaxCompatibility
	if key == "description" {
		limit = MaxDescription
	}
	n := utf8.RuneCountInString(*dest)
	switch problem := nameProblem(text); {
	case key == "name" && problem != "":
		p.addError(line, "name: %.80q %s", text, problem)
	case key == "name" && text != folder:
		p.addError(line, "name: %s differs from the name of its directory, %.80q", text, folder)
	case key == "description" && n == 0:
		p.addError(line, "description: empty; the model selects skills by their descriptions")
	case n > limit:
		p.addError(line, "%s: %d characters exceed the maximum of %d", key, n, limit)
	}
}

// scalar returns the text of a scalar value of a key; false if there is an
// error.
func (p *parser) scalar(key string, line int, n *yaml.Node) (string, bool) {
	switch {
	case n.Kind == yaml.AliasNode:
		p.addError(line, "%.60s: aliases are not supported", key)
		return "", false
	case n.Kind != yaml.ScalarNode:
		p.addError(line, "%.60s: must be a string", key)
		return "", false
	case n.Tag == "!!null":
		p.addError(line, "%.60s: empty", key)
		return "", false
	}
	if _, char, found := findUnsafe(n.Value); found { // "\e" in quotes
		p.addError(line, "%.60s: contains the unsafe character %U", key, char)
		return "", false
	}
	return n.Value, true
}

func (p *parser) parseMetadata(line int, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.addError(line, "metadata: must be a mapping")
		return
	}
	p.skill.Metadata = map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
			p.addWarning(key.Line+1, "metadata: ignored, because keys and values must be strings")
			continue
		}
		name, nameOK := p.scalar("metadata", key.Line+1, key)
		text, textOK := p.scalar("metadata", value.Line+1, value)
		if nameOK && textOK {
			p.skill.Metadata[oneLine(name)] = oneLine(text)
		}
	}
	if p.skill.Version == "" {
		p.skill.Version = p.skill.Metadata["version"]
	}
}

// parseAllowedTools parses a list of names, or a string of names separated by
// spaces or commas. Spaces and commas within parentheses do not separate names:
// Bash(git add:*).
func (p *parser) parseAllowedTools(line int, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		p.addWarning(line, "allowed-tools: an empty value restricts nothing; write [] to allow no tool")
		return
	}
	p.skill.AllowedTools = []string{}
	add := func(line int, name string) {
		const limit = 100
		switch {
		case len(p.skill.AllowedTools) == limit:
			p.addError(line, "allowed-tools: more than %d", limit)
		case len(p.skill.AllowedTools) > limit:
			return
		case len(name) > MaxPath:
			p.addError(line, "allowed-tools: %.60q is too long", name)
			return
		}
		p.skill.AllowedTools = append(p.skill.AllowedTools, name)
	}
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			if name, ok := p.scalar("allowed-tools", item.Line+1, item); ok {
				add(item.Line+1, oneLine(name))
			}
		}
	} else if text, ok := p.scalar("allowed-tools", line, n); ok {
		for _, name := range splitTools(text) {
			add(line, name)
		}
	}
	for _, note := range ParseAllowedTools(p.skill.AllowedTools).Warnings {
		p.addWarning(line, "allowed-tools: %s", note)
	}
}

// splitTools splits at spaces and commas outside of parentheses.
func splitTools(text string) []string {
	depth := 0
	return strings.FieldsFunc(oneLine(text), func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		case ' ', ',':
			return depth == 0
		}
		return false
	})
}
