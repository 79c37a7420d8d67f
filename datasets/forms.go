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

// OneForm drops the doubles of files that are there in several forms, such as
// test-00000-of-00001.parquet beside test.jsonl: rows would come twice. Only
// what stands in the same folder under the same name, without the numbers of
// shards, is a double; of it the first one of parquet, JSON lines and JSON
// stays, and with it the shards that this form has not. Other files may well
// have other rows, and if not, their ids come twice and are refused.
func OneForm(names []string) []string {
	names = distinct(names)
	best := map[string]string{} // what is meant -> its best form
	for _, name := range names {
		key, _ := meant(name)
		if form := formOf(name); best[key] == "" || slices.Index(forms, form) < slices.Index(forms, best[key]) {
			best[key] = form
		}
	}
	type part struct{ key, number, of string }
	have := map[part]bool{} // the shards in the best form, and, without a number, of how many they are
	for _, name := range names {
		if key, shard := meant(name); shard != nil && formOf(name) == best[key] {
			have[part{key, shard[2], shard[3]}], have[part{key, "", shard[3]}] = true, true
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		key, shard := meant(name)
		if formOf(name) == best[key] {
			return false
		}
		completes := shard != nil && have[part{key, "", shard[3]}] && !have[part{key, shard[2], shard[3]}]
		return !completes
	})
}

// meant is a name without its ending, number and hash, and the parts of a
// shard's name, nil for other files.
func meant(name string) (string, []string) {
	base, _ := stem(name)
	shard := shardName.FindStringSubmatch(base)
	if shard != nil {
		base = shard[1]
	}
	return path.Join(path.Dir(name), base), shard
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
