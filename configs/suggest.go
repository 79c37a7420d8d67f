package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// suggest returns a hint for an unknown key at path: for a key of mini-swe-agent its
// replacement in mini; otherwise the section that has the key, the closest key, or all
// keys.
func suggest(key, path string, fields map[string]reflect.Type) string {
	list, _, isItem := strings.Cut(path, "[")
	for _, n := range OldNames {
		section, name, _ := strings.Cut(n.Old, ".")
		if n.Why != "" && (name == key && fieldsOf(reflect.TypeFor[Config]())[section] != nil || isItem && n.Old == list+"[]."+key) {
			return "; " + n.Why
		}
	}
	if sections := sectionsOf(key); len(sections) > 0 {
		return fmt.Sprintf("; %s belongs under %s", key, strings.Join(sections, " or "))
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	if best := ClosestName(key, names); best != "" {
		return fmt.Sprintf("; did you mean %s?", strings.TrimPrefix(path+"."+best, "."))
	}
	for _, name := range names { // model.name for model.model_name
		if strings.HasSuffix(name, "_"+key) && path != "" && strings.HasPrefix(name, path) {
			return fmt.Sprintf("; did you mean %s.%s?", path, name)
		}
	}
	for _, full := range Keys() { // a typo, and the wrong section
		name := full[strings.LastIndexByte(full, '.')+1:]
		if len(key) > 3 && levenshtein.ComputeDistance(key, name) <= 2 {
			return fmt.Sprintf("; did you mean %s?", full)
		}
	}
	return fmt.Sprintf("; %s has %s", orFile(path), strings.Join(names, ", "))
}

// sectionsOf returns the sections that have a key.
func sectionsOf(key string) []string {
	var sections []string
	for _, full := range Keys() {
		if section, ok := strings.CutSuffix(full, "."+key); ok {
			sections = append(sections, section)
		}
	}
	return sections
}

// ClosestName returns the name that the user may have meant: the only name with the prefix
// key; or the name with the smallest edit distance, if that is at most half of the length of
// key; or the only name with the same first minPrefix letters. It returns "" if there is none.
func ClosestName(key string, names []string) string {
	if len(key) > 80 {
		return "" // not a typo, and the distance would take long to compute
	}
	if name := uniqueMatch(key, names); len(key) > 1 && name != "" {
		return name
	}
	best, distance := "", len(key)/2+1
	for _, name := range names {
		if d := levenshtein.ComputeDistance(key, name); d < distance {
			best, distance = name, d
		}
	}
	if best == "" && len(key) > minPrefix {
		return uniqueMatch(key[:minPrefix], names)
	}
	return best
}

// minPrefix is the length of a common prefix that makes two names similar, for example
// steps and step_limit.
const minPrefix = 4

// uniqueMatch returns the only name with a prefix; "" if there are none or several.
func uniqueMatch(prefix string, names []string) string {
	found := ""
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}
