package hub

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/datasets"
)

// splitFiles groups the files of a repository by split: as the dataset card says (configs
// in its YAML header), or else by file names. It ignores a configuration that is
// unsupported or matches no files. See "Manual Configuration" in the hub's documentation.
func splitFiles(names []string, card []byte) map[string][]string {
	if config, ok := defaultConfig(card); ok {
		if splits := config.splits(names); len(splits) > 0 {
			return splits
		}
	}
	return datasets.Splits(names)
}

// config is a configuration in a card, which the hub also calls a subset.
type config struct {
	Name    string    `yaml:"config_name"`
	Default bool      `yaml:"default"`
	Dir     string    `yaml:"data_dir"`
	Files   yaml.Node `yaml:"data_files"`
}

// defaultConfig returns the configuration marked as default, or named "default", or the
// first.
func defaultConfig(card []byte) (config, bool) {
	var head struct {
		Configs []config `yaml:"configs"`
	}
	if yaml.Unmarshal(frontMatter(card), &head) != nil || len(head.Configs) == 0 {
		return config{}, false
	}
	for _, matches := range []func(config) bool{
		func(c config) bool { return c.Default },
		func(c config) bool { return c.Name == "default" },
	} {
		if i := slices.IndexFunc(head.Configs, matches); i >= 0 {
			return head.Configs[i], true
		}
	}
	return head.Configs[0], true
}

// frontMatter returns the YAML header of a card, between two lines of three dashes.
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

// splits returns the files of each split, in the order of the card; files that match one
// pattern are sorted by name. Without data_files, it groups the files below data_dir by their
// names.
func (c config) splits(names []string) map[string][]string {
	prefix := ""
	if dir := strings.Trim(strings.TrimPrefix(c.Dir, "./"), "/"); dir != "" && dir != "." {
		prefix = dir + "/"
	}
	if c.Files.IsZero() && prefix != "" {
		under := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, prefix) })
		return datasets.Splits(under)
	}
	left := maxPatterns
	found := map[string][]string{}
	for split, patterns := range c.patterns() {
		if !splitName.MatchString(split) {
			continue
		}
		if files := matchFiles(names, prefix, patterns, &left); len(files) > 0 {
			found[split] = files
		}
	}
	return found
}

// patterns parses data_files, which is one of: a pattern, or a list of patterns, for the
// split train; a map from split to patterns; a list of objects with split and path.
func (c config) patterns() map[string][]string {
	byName := map[string]stringList{}
	var single stringList
	var listed []struct {
		Split string     `yaml:"split"`
		Path  stringList `yaml:"path"`
	}
	patterns := map[string][]string{}
	switch {
	case c.Files.Decode(&single) == nil:
		patterns["train"] = single
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

// stringList is a string or a list of strings in YAML.
type stringList []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *stringList) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = []string{n.Value}
		return nil
	}
	var list []string
	err := n.Decode(&list)
	*l = list
	return err
}

// Limits for a card, because each pattern is matched against every file.
const (
	maxPattern  = 500 // bytes
	maxPatterns = 50  // not counting plain file names
)

// matchFiles returns the files that match patterns, in the order of the patterns; those of one
// pattern are sorted. In a pattern, * matches within a directory, ** across directories, ? one
// character, and [a-z] one of a range. left is the number of patterns still allowed.
func matchFiles(names []string, prefix string, patterns []string, left *int) []string {
	var files []string
	seen := map[string]bool{}
	names = slices.Sorted(slices.Values(names))
	for _, pattern := range patterns {
		pattern = prefix + strings.TrimPrefix(pattern, "./")
		found := []string{pattern} // a file name may contain brackets
		if _, isName := slices.BinarySearch(names, pattern); !isName {
			if *left--; *left < 0 || len(pattern) > maxPattern || !strings.ContainsAny(pattern, "*?[") {
				continue
			}
			re, err := regexp.Compile("^" + asRegexp.Replace(regexp.QuoteMeta(pattern)) + "$")
			if err != nil {
				continue // ignore unsupported patterns
			}
			found = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !re.MatchString(name) })
		}
		for _, name := range found {
			if !seen[name] {
				seen[name] = true
				files = append(files, name)
			}
		}
	}
	return datasets.RemoveDuplicates(files)
}

// asRegexp converts a pattern, whose characters are escaped, to a regular expression.
var asRegexp = strings.NewReplacer(`\*\*/`, `(?:.*/)?`, `\*\*`, `.*`, `\*`, `[^/]*`, `\?`, `[^/]`, `\[!`, `[^`, `\[`, `[`, `\]`, `]`)
