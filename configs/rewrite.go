package configs

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// The functions here change the text of a document where a setting stands. They
// know the usual ways to write YAML; Document.become looks whether the outcome is
// what was wanted, so that a guess that is wrong does no harm.

// rewritten is the text with a value at a path.
func (d *Document) rewritten(path []string, leaf *yaml.Node) string {
	root, err := d.root()
	if err != nil || root == nil || isNull(root) {
		return d.text + d.glue() + d.block(path, leaf, "")
	}
	lines := strings.SplitAfter(d.text, "\n")
	m, flow := root, root.Style&yaml.FlowStyle != 0
	for i, part := range path {
		key, value := entryOf(m, part)
		last := i == len(path)-1
		switch {
		case key == nil && flow:
			return intoFlow(lines, m, path[i:], leaf)
		case key == nil:
			return d.intoBlock(lines, m, path[i:], leaf)
		case flow || last && besideKey(key, value):
			if !last {
				break
			}
			return inPlace(lines, value, leaf, flow)
		case last || value.Kind != yaml.MappingNode || len(value.Content) == 0 && value.Style&yaml.FlowStyle == 0:
			from, to := extent(lines, key)
			block := d.block(path[i:], leaf, strings.Repeat(" ", key.Column-1))
			return strings.Join(slices.Concat(lines[:from], []string{block}, lines[to:]), "")
		}
		m, flow = value, flow || value.Style&yaml.FlowStyle != 0
	}
	return ""
}

// without is the text without these entries, the outermost first. Comments that
// stand between them stay.
func (d *Document) without(gone [][2]*yaml.Node) string {
	lines := strings.SplitAfter(d.text, "\n")
	for i, entry := range slices.Backward(gone) {
		from, to := extent(lines, entry[0])
		if i < len(gone)-1 {
			to = from + 1 // the line of the section alone
		}
		if from >= len(lines) || to > len(lines) {
			return ""
		}
		lines = slices.Delete(lines, from, to)
	}
	return strings.Join(lines, "")
}

// glue ends a last line that has no end.
func (d *Document) glue() string {
	if d.text == "" || strings.HasSuffix(d.text, "\n") {
		return ""
	}
	return d.newline()
}

func (d *Document) newline() string {
	if strings.Contains(d.text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// block is a value below the keys of a path, a line each.
func (d *Document) block(path []string, leaf *yaml.Node, indent string) string {
	var b strings.Builder
	for i, part := range path {
		b.WriteString(indent + strings.Repeat("  ", i) + inline(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: part}) + ":")
		if i == len(path)-1 {
			b.WriteString(" " + inline(leaf))
		}
		b.WriteString(d.newline())
	}
	return b.String()
}

// intoBlock adds an entry at the end of a section, or of the file.
func (d *Document) intoBlock(lines []string, m *yaml.Node, path []string, leaf *yaml.Node) string {
	first, last := m.Content[0], m.Content[len(m.Content)-2]
	_, at := extent(lines, last)
	block := d.block(path, leaf, strings.Repeat(" ", first.Column-1))
	if at > 0 && !strings.HasSuffix(lines[at-1], "\n") {
		block = d.newline() + block
	}
	return strings.Join(slices.Concat(lines[:at], []string{block}, lines[at:]), "")
}

// intoFlow adds an entry before the brace that closes a mapping.
func intoFlow(lines []string, m *yaml.Node, path []string, leaf *yaml.Node) string {
	line, from, to := span(lines, m, true)
	if line < 0 || to-from < 2 {
		return ""
	}
	for _, part := range slices.Backward(path[1:]) {
		leaf = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: part}, leaf}}
	}
	text := inline(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: path[0]}, leaf}})
	text = strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
	if len(m.Content) > 0 {
		text = ", " + text
	}
	return splice(lines, line, to-1, to-1, text)
}

// inPlace replaces a value that stands on one line.
func inPlace(lines []string, value, leaf *yaml.Node, flow bool) string {
	line, from, to := span(lines, value, flow)
	if line < 0 {
		return ""
	}
	return splice(lines, line, from, to, inline(leaf))
}

// splice replaces some characters of a line.
func splice(lines []string, line, from, to int, text string) string {
	runes := []rune(lines[line])
	changed := slices.Clone(lines)
	changed[line] = string(runes[:from]) + text + string(runes[to:])
	return strings.Join(changed, "")
}

// entryOf is a key of a mapping and its value; nil where there is none.
func entryOf(m *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 1; i < len(m.Content); i += 2 {
		if m.Content[i-1].Value == name {
			return m.Content[i-1], m.Content[i]
		}
	}
	return nil, nil
}

// besideKey says that a value begins behind its key, and is no block.
func besideKey(key, value *yaml.Node) bool {
	return value.Line == key.Line && value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && value.Anchor == "" && !isNull(value)
}

// extent is the lines of an entry in block style: up to the next one that is
// not further in. Blank lines and comments behind it are not its own.
func extent(lines []string, key *yaml.Node) (from, to int) {
	from = min(key.Line-1, len(lines)) // YAML knows line ends that these lines have not
	to = min(from+1, len(lines))
	for i := from + 1; i < len(lines); i++ {
		text := strings.TrimRight(lines[i], " \r\n")
		own := len(text) - len(strings.TrimLeft(text, " "))
		item := strings.HasPrefix(text[own:], "- ") && own == key.Column-1 // lists may stand as far out as their key
		switch {
		case text == "":
			continue
		case own < key.Column && !item:
			return from, to
		}
		to = i + 1
	}
	return from, to
}

// span is where a value stands, in characters of a line; line is -1 where it has
// more than one. In flow style commas and braces end it.
func span(lines []string, value *yaml.Node, flow bool) (line, from, to int) {
	line, from = value.Line-1, value.Column-1
	if line < 0 || line >= len(lines) {
		return -1, 0, 0
	}
	runes := []rune(strings.TrimRight(lines[line], "\r\n"))
	if from < 0 || from >= len(runes) {
		return -1, 0, 0
	}
	switch runes[from] {
	case '"', '\'':
		to = quoteEnd(runes, from)
	case '[', '{':
		to = bracketEnd(runes, from)
	default:
		to = plainEnd(runes, from, flow)
	}
	if to < 0 {
		return -1, 0, 0
	}
	return line, from, to
}

func plainEnd(runes []rune, from int, flow bool) int {
	to := from
	for to < len(runes) {
		r := runes[to]
		if r == '#' && to > from && runes[to-1] == ' ' || flow && strings.ContainsRune(",]}", r) {
			break
		}
		to++
	}
	for to > from && runes[to-1] == ' ' {
		to--
	}
	return to
}

// quoteEnd is behind the quote that closes the one at from; -1 without one.
func quoteEnd(runes []rune, from int) int {
	quote := runes[from]
	for i := from + 1; i < len(runes); i++ {
		switch {
		case quote == '"' && runes[i] == '\\':
			i++
		case runes[i] != quote:
		case quote == '\'' && i+1 < len(runes) && runes[i+1] == '\'':
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// bracketEnd is behind the bracket that closes the one at from; -1 without one.
func bracketEnd(runes []rune, from int) int {
	depth := 0
	for i := from; i < len(runes); i++ {
		switch runes[i] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			if strings.ContainsRune("[{,: ", runes[i-1]) {
				if i = quoteEnd(runes, i) - 1; i < 0 {
					return -1
				}
			}
		}
	}
	return -1
}
