package datasets

import (
	"path"
	"slices"
	"strings"
)

// notData are files that tools leave beside data, with the ending of data.
var notData = []string{"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "config.json", "state.json"}

// forms are the endings of data files, the preferred one first: parquet keeps
// the types of columns, and a list of rows has to be whole.
var forms = []string{".parquet", ".jsonl", ".json"}

// IsData tells the files of a dataset, in a folder or on a hub, by their
// slash-separated names: .parquet, .jsonl and .json, also with .gz. Hidden ones
// are none, nor is what tools write about data, such as dataset_info.json.
func IsData(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if hidden(part) {
			return false
		}
	}
	return formOf(name) != "" && !slices.Contains(notData, path.Base(name))
}

// OneForm drops the doubles of a split that is there in several forms, such as
// data/test-00000-of-00001.parquet beside test.jsonl: rows would come twice.
// The first one of parquet, JSON lines and JSON stays. Shards that are only
// complete together all stay, whatever their forms.
func OneForm(names []string) []string {
	names = distinct(names)
	ofSet := map[string]string{} // a set of shards -> its form
	byForm := map[string][]string{}
	for _, name := range names {
		form := formOf(name)
		byForm[form] = append(byForm[form], name)
		base, _ := stem(name)
		if m := shardName.FindStringSubmatch(base); m != nil {
			set := path.Join(path.Dir(name), m[1]) + "-of-" + m[3]
			if known, ok := ofSet[set]; ok && known != form {
				return names
			}
			ofSet[set] = form
		}
	}
	for _, form := range forms {
		if len(byForm[form]) > 0 {
			return byForm[form]
		}
	}
	return names
}

// distinct keeps one of the files that differ in their endings only.
func distinct(names []string) []string {
	best := map[string]string{} // without the ending -> the name to keep
	plain := func(name string) string { return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), formOf(name)) }
	rank := func(name string) int { return slices.Index(forms, formOf(name)) }
	for _, name := range names {
		if other, ok := best[plain(name)]; !ok || rank(name) < rank(other) {
			best[plain(name)] = name
		}
	}
	var kept []string
	for _, name := range names {
		if best[plain(name)] == name {
			kept = append(kept, name)
		}
	}
	return kept
}

// hidden is what Unix hides, and what the hub does not take for data.
func hidden(part string) bool { return strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") }

// formOf is the ending of a data file without .gz, "" for other files.
func formOf(name string) string {
	name = strings.TrimSuffix(name, ".gz")
	for _, form := range forms {
		if strings.HasSuffix(name, form) {
			return form
		}
	}
	return ""
}

// stem is the last part of a name without its ending; ok says that the ending
// is one of a data file.
func stem(name string) (base string, ok bool) {
	form := formOf(name)
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".gz"), form), form != ""
}
