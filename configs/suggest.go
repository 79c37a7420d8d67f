package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// suggest says what to write instead of a key that does not exist at path: the
// answer to a key of mini-swe-agent, the section the key belongs under, the
// nearest key there, or, where nothing is near, all of them.
func suggest(key, path string, fields map[string]reflect.Type) string {
	list, _, isItem := strings.Cut(path, "[")
	if answer, ok := peerItems[list][key]; ok && isItem {
		return "; " + answer
	}
	if answer, ok := peerKeys[key]; ok {
		return "; " + answer
	}
	if places := placesOf(key); len(places) > 0 {
		return fmt.Sprintf("; %s belongs under %s", key, strings.Join(places, " or "))
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	if best := Nearest(key, names); best != "" {
		return fmt.Sprintf("; did you mean %s?", strings.TrimPrefix(path+"."+best, "."))
	}
	for _, name := range names { // model.name for model.model_name
		if strings.HasSuffix(name, "_"+key) && path != "" && strings.HasPrefix(name, path) {
			return fmt.Sprintf("; did you mean %s.%s?", path, name)
		}
	}
	for _, full := range Keys() { // a slip in the key and another section
		name := full[strings.LastIndexByte(full, '.')+1:]
		if len(key) > 3 && levenshtein.ComputeDistance(key, name) <= 2 {
			return fmt.Sprintf("; did you mean %s?", full)
		}
	}
	return fmt.Sprintf("; %s has %s", orTop(path), strings.Join(names, ", "))
}

// placesOf are the sections that have a key.
func placesOf(key string) []string {
	var places []string
	for _, full := range Keys() {
		if section, ok := strings.CutSuffix(full, "."+key); ok {
			places = append(places, section)
		}
	}
	return places
}

// Nearest is what somebody who typed key may have meant: the only name that
// begins with it, or the one that takes the fewest letters to come to; "" where
// that is more than half of the key.
func Nearest(key string, names []string) string {
	if len(key) > 80 {
		return "" // no slip, and the distance would take its time
	}
	if name := onlyWith(key, names); len(key) > 1 && name != "" {
		return name
	}
	best, distance := "", len(key)/2+1
	for _, name := range names {
		if d := levenshtein.ComputeDistance(key, name); d < distance {
			best, distance = name, d
		}
	}
	if best == "" && len(key) > alike {
		return onlyWith(key[:alike], names)
	}
	return best
}

// alike is how many letters at the beginning make two names related, where
// nothing else does: steps and step_limit.
const alike = 4

// onlyWith is the name that begins with a prefix, where it is the only one.
func onlyWith(prefix string, names []string) string {
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
