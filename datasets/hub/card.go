package hub

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/datasets"
)

// splitsOf sorts the files of a repository into splits: as its card says
// (configs in the YAML at its head), else by their names. What a card says and
// mini cannot follow, or leads to no file, is as if it were not there. The
// form is "Manual Configuration" in the hub's documentation.
func splitsOf(names []string, card []byte) map[string][]string {
	if config, ok := defaultConfig(card); ok {
		if splits := config.splits(names); len(splits) > 0 {
			return splits
		}
	}
	return datasets.Splits(names)
}

// config is one of a card's configurations, which others call subsets.
type config struct {
	Name    string    `yaml:"config_name"`
	Default bool      `yaml:"default"`
	Dir     string    `yaml:"data_dir"`
	Files   yaml.Node `yaml:"data_files"`
}

// defaultConfig is the one that is marked, the one that is called so, or the
// first.
func defaultConfig(card []byte) (config, bool) {
	var head struct {
		Configs []config `yaml:"configs"`
	}
	if yaml.Unmarshal(frontMatter(card), &head) != nil || len(head.Configs) == 0 {
		return config{}, false
	}
	for _, is := range []func(config) bool{
		func(c config) bool { return c.Default },
		func(c config) bool { return c.Name == "default" },
	} {
		if i := slices.IndexFunc(head.Configs, is); i >= 0 {
			return head.Configs[i], true
		}
	}
	return head.Configs[0], true
}

// frontMatter is what stands between the first two lines of three dashes.
func frontMatter(card []byte) []byte {
	card = bytes.ReplaceAll(bytes.TrimPrefix(card, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(card, []byte("---\n"))
	if !ok {
		return nil
	}
	head, _, ok := bytes.Cut(rest, []byte("\n---"))
	if !ok {
		return nil
	}
	return head
}

// splits finds the files of each split, in the order in which the card, and
// for a pattern the name, puts them.
func (c config) splits(names []string) map[string][]string {
	prefix := ""
	if dir := strings.Trim(strings.TrimPrefix(c.Dir, "./"), "/"); dir != "" && dir != "." {
		prefix = dir + "/"
	}
	if c.Files.IsZero() && prefix != "" {
		under := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, prefix) })
		return datasets.Splits(under)
	}
	m := newMatcher(names)
	found := map[string][]string{}
	for split, patterns := range c.patterns() {
		if !splitName.MatchString(split) {
			continue
		}
		if files := m.all(prefix, patterns); len(files) > 0 {
			found[split] = files
		}
	}
	return found
}

// patterns reads the forms of data_files: a pattern or a list of them, which
// is the split train; a map of splits; a list of objects with split and path.
func (c config) patterns() map[string][]string {
	byName := map[string]oneOrMore{}
	var plain oneOrMore
	var listed []struct {
		Split string    `yaml:"split"`
		Path  oneOrMore `yaml:"path"`
	}
	patterns := map[string][]string{}
	switch {
	case c.Files.Decode(&plain) == nil:
		patterns["train"] = plain
	case c.Files.Decode(&listed) == nil:
		for _, l := range listed {
			patterns[l.Split] = append(patterns[l.Split], l.Path...)
		}
	case c.Files.Decode(&byName) == nil:
		for split, paths := range byName {
			patterns[split] = paths
		}
	}
	return patterns
}

// oneOrMore is a string or a list of strings.
type oneOrMore []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (o *oneOrMore) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*o = []string{n.Value}
		return nil
	}
	var list []string
	err := n.Decode(&list)
	*o = list
	return err
}

// Bounds on what a card may have looked for: each pattern is held against the
// name of every file.
const (
	maxPattern  = 500 // bytes
	maxPatterns = 50  // names of files do not count
)

// matcher finds files by patterns.
type matcher struct {
	names []string // sorted
	left  int      // patterns that may still come
}

func newMatcher(names []string) *matcher {
	return &matcher{names: slices.Sorted(slices.Values(names)), left: maxPatterns}
}

// all returns the files of a split. What is named is meant; of what patterns
// cover, and the card does not name, one form is taken.
func (m *matcher) all(prefix string, patterns []string) []string {
	var files, covered []string
	named := map[string]bool{}
	for _, pattern := range patterns {
		pattern = prefix + strings.TrimPrefix(pattern, "./")
		for _, name := range m.match(pattern) {
			if _, taken := named[name]; !taken {
				files = append(files, name)
			}
			named[name] = named[name] || name == pattern
		}
	}
	for _, name := range files {
		if !named[name] {
			covered = append(covered, name)
		}
	}
	for _, name := range datasets.OneForm(covered) {
		named[name] = true
	}
	return slices.DeleteFunc(files, func(name string) bool { return !named[name] })
}

// match returns the names that a pattern covers, in their order by name: *
// within a folder, ** across folders, ? one character, [a-z] one of these.
func (m *matcher) match(pattern string) []string {
	if _, is := slices.BinarySearch(m.names, pattern); is {
		return []string{pattern} // a name may have a bracket in it
	}
	if m.left == 0 || len(pattern) > maxPattern || !strings.ContainsAny(pattern, "*?[") {
		return nil
	}
	m.left--
	re, err := regexp.Compile("^" + translate(pattern) + "$")
	if err != nil {
		return nil // what mini cannot follow is as if it were not there
	}
	var found []string
	for _, name := range m.names {
		if re.MatchString(name) {
			found = append(found, name)
		}
	}
	return found
}

// translate writes a pattern as a regular expression.
func translate(pattern string) string {
	var re strings.Builder
	for len(pattern) > 0 {
		n := 1
		switch {
		case strings.HasPrefix(pattern, "**/"):
			re.WriteString("(?:.*/)?")
			n = 3
		case strings.HasPrefix(pattern, "**"):
			re.WriteString(".*")
			n = 2
		case pattern[0] == '*':
			re.WriteString("[^/]*")
		case pattern[0] == '?':
			re.WriteString("[^/]")
		case pattern[0] == '[' && strings.IndexByte(pattern, ']') > 1:
			n = strings.IndexByte(pattern, ']') + 1
			inner := strings.ReplaceAll(pattern[1:n-1], `\`, `\\`)
			if rest, negated := strings.CutPrefix(inner, "!"); negated {
				inner = "^" + rest
			}
			re.WriteString("[" + strings.ReplaceAll(inner, "[", `\[`) + "]")
		default:
			re.WriteString(regexp.QuoteMeta(pattern[:1]))
		}
		pattern = pattern[n:]
	}
	return re.String()
}
