package skills

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/internal/lazyregexp"
)

// parser reads one SKILL.md, and notes what is wrong with it.
type parser struct {
	skill    Skill
	problems []Problem // without names of files
}

// Parse reads the content of a SKILL.md whose folder has this name. A skill that
// is in order has no problems but warnings.
func Parse(folder string, data []byte) (Skill, []Problem) {
	p := &parser{}
	if head, text, at, ok := p.split(data); ok {
		p.skill.Text = text
		p.text(text, at)
		p.head(folder, head)
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return a.Line - b.Line })
	for i := range p.problems {
		p.problems[i].Skill = folder
	}
	return p.skill, p.problems
}

func (p *parser) wrong(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (p *parser) warn(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{Line: line, Text: fmt.Sprintf(format, args...), Warning: true})
}

// split finds the front matter, whose first line is line 2 of the file, and the
// text behind it, which begins in line at.
func (p *parser) split(data []byte) (head, text string, at int, ok bool) {
	if len(data) > MaxText {
		p.wrong(0, "it is larger than %d KB; move parts of it to files in references/", MaxText>>10)
		return "", "", 0, false
	}
	if !utf8.Valid(data) {
		line := 1
		for rest := data; len(rest) > 0; {
			r, n := utf8.DecodeRune(rest)
			if r == utf8.RuneError && n == 1 {
				break
			}
			if r == '\n' {
				line++
			}
			rest = rest[n:]
		}
		p.wrong(line, "it is not UTF-8")
		return "", "", 0, false
	}
	whole := strings.TrimPrefix(string(data), "\ufeff")
	whole = strings.ReplaceAll(whole, "\r\n", "\n")
	first, rest, _ := strings.Cut(whole, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		p.wrong(1, "the first line is not ---; front matter with name and description begins there")
		return "", "", 0, false
	}
	at = 2
	for line := range strings.Lines(rest) {
		at++
		if strings.TrimRight(line, " \t\n") == "---" {
			return head, rest[len(head)+len(line):], at, true
		}
		if head += line; len(head) > MaxHead {
			p.wrong(1, "the front matter is larger than %d KB, or the line --- behind it is missing", MaxHead>>10)
			return "", "", 0, false
		}
	}
	p.wrong(1, "the line --- behind the front matter is missing")
	return "", "", 0, false
}

func (p *parser) text(text string, at int) {
	if strings.TrimSpace(text) == "" {
		p.wrong(at, "there is no text behind the front matter")
	}
	if line, bad, found := steering(text); found {
		p.wrong(at+line-1, "there is %U in the text, which is no character to be read", bad)
	}
	const long = 500
	if n := strings.Count(text, "\n"); n > long {
		p.warn(at, "the text has %d lines; a model reads all of them, and more than %d are better split into files in references/", n, long)
	}
}

// yamlLine is how yaml begins its messages; the line may be missing.
var yamlLine = lazyregexp.New(`^yaml: (?:line (\d+): )?`)

func (p *parser) head(folder, head string) {
	if line, bad, found := steering(head); found {
		p.wrong(line+1, "there is %U in the front matter, which is no character to be read", bad)
		return
	}
	var doc yaml.Node
	if err := decode(head, &doc); err != nil {
		line := 1
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			line, _ = strconv.Atoi(m[1]) // the pattern matched digits
		}
		text := yamlLine.ReplaceAllString(err.Error(), "")
		if strings.Contains(text, "mapping values are not allowed") {
			text += `; a value with ": " in it goes in quotes`
		}
		p.wrong(line+1, "%.300s", text)
		return
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		p.wrong(2, "the front matter has no keys; name and description are needed")
		return
	}
	p.fields(folder, doc.Content[0])
}

// decode is yaml's, whose panics are errors: the file may be anybody's.
func decode(text string, into *yaml.Node) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("it is no YAML that could be read")
		}
	}()
	return yaml.Unmarshal([]byte(text), into)
}

func (p *parser) fields(folder string, n *yaml.Node) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		line := key.Line + 1
		if key.Kind != yaml.ScalarNode {
			p.wrong(line, "a key is no text")
			continue
		}
		if first, twice := seen[key.Value]; twice {
			p.wrong(line, "%.60q is there twice; first in line %d", key.Value, first)
			continue
		}
		seen[key.Value] = line
		p.field(folder, key.Value, line, value)
	}
	for _, needed := range []string{"name", "description"} {
		if seen[needed] == 0 {
			p.wrong(1, "%s is missing", needed)
		}
	}
}

// keys are what front matter may have.
var keys = []string{"name", "description", "version", "allowed-tools", "license", "compatibility", "metadata"}

func (p *parser) field(folder, key string, line int, value *yaml.Node) {
	s := &p.skill
	switch key {
	case "name":
		text, ok := p.scalar(key, line, value)
		s.Name = text
		if !ok {
			return
		}
		if bad := badName(s.Name); bad != "" {
			p.wrong(line, "name: %.80q %s", s.Name, bad)
		} else if s.Name != folder {
			p.wrong(line, "name: %s is not the name of its folder, %.80q", s.Name, folder)
		}
	case "description":
		text, ok := p.scalar(key, line, value)
		s.Description = oneLine(text)
		if n := utf8.RuneCountInString(s.Description); n > MaxDescription {
			p.wrong(line, "description: %d characters are more than %d", n, MaxDescription)
		} else if ok && n == 0 {
			p.wrong(line, "description: it is empty; it is what a model chooses by")
		}
	case "version":
		s.Version = p.short(key, line, value)
	case "license":
		s.License = p.short(key, line, value)
	case "compatibility":
		s.Compatibility = p.short(key, line, value)
	case "allowed-tools":
		p.allowed(line, value)
	case "metadata":
		p.metadata(line, value)
	default:
		text := fmt.Sprintf("unknown key %.60q", key)
		if near := nearest(key, keys); near != "" {
			text += "; did you mean " + near + "?"
		}
		p.warn(line, "%s", text)
	}
}

// scalar is the text of a value that is one.
func (p *parser) scalar(key string, line int, n *yaml.Node) (string, bool) {
	switch {
	case n.Kind == yaml.AliasNode:
		p.wrong(line, "%.60s: aliases are not read here", key)
		return "", false
	case n.Kind != yaml.ScalarNode:
		p.wrong(line, "%.60s: a text is needed", key)
		return "", false
	case n.Tag == "!!null":
		p.wrong(line, "%.60s: it is empty", key)
		return "", false
	}
	if _, bad, found := steering(n.Value); found { // "\e" in quotes
		p.wrong(line, "%.60s: there is %U in it, which is no character to be read", key, bad)
		return "", false
	}
	return n.Value, true
}

// short is one line of at most MaxCompatibility characters.
func (p *parser) short(key string, line int, n *yaml.Node) string {
	text, _ := p.scalar(key, line, n)
	text = oneLine(text)
	if c := utf8.RuneCountInString(text); c > MaxCompatibility {
		p.wrong(line, "%.60s: %d characters are more than %d", key, c, MaxCompatibility)
	}
	return text
}

func (p *parser) metadata(line int, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.wrong(line, "metadata: keys and values are needed")
		return
	}
	p.skill.Metadata = map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
			p.warn(key.Line+1, "metadata: only texts are read")
			continue
		}
		name, ok := p.scalar("metadata", key.Line+1, key)
		text, fine := p.scalar("metadata", value.Line+1, value)
		if ok && fine {
			p.skill.Metadata[oneLine(name)] = oneLine(text)
		}
	}
	if p.skill.Version == "" {
		p.skill.Version = p.skill.Metadata["version"]
	}
}

// allowed reads a list, or a text with spaces or commas between the names, in
// which those in brackets do not count: Bash(git add:*).
func (p *parser) allowed(line int, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		p.warn(line, "allowed-tools: it is empty, which restricts nothing; [] allows no tool")
		return
	}
	p.skill.AllowedTools = []string{}
	add := func(line int, name string) {
		const most = 100
		switch {
		case len(p.skill.AllowedTools) == most:
			p.wrong(line, "allowed-tools: more than %d", most)
		case len(p.skill.AllowedTools) > most:
			return
		case len(name) > MaxPath:
			p.wrong(line, "allowed-tools: %.60q is too long", name)
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
	for _, note := range GrantOf(p.skill.AllowedTools).Notes {
		p.warn(line, "allowed-tools: %s", note)
	}
}

// splitTools cuts at spaces and commas outside of brackets.
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
