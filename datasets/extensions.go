package datasets

import (
	"path"
	"slices"
	"strings"
)

// metadataFiles are files next to the data that have the extension of a data file.
var metadataFiles = []string{"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "config.json", "state.json"}

// extensions are the extensions of data files, in order of preference: parquet preserves
// the types of columns, and JSON lines can be read row by row.
var extensions = []string{".parquet", ".jsonl", ".json"}

// IsDataFile reports whether a slash-separated name is that of a data file: .parquet,
// .jsonl or .json, optionally followed by .gz. Hidden files, files in hidden directories and
// metadata such as dataset_info.json are not.
func IsDataFile(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if isHidden(part) {
			return false
		}
	}
	return extension(name) != "" && !slices.Contains(metadataFiles, path.Base(name))
}

// RemoveDuplicates removes files that contain the same rows in another format, for example
// test.jsonl next to test-00000-of-00001.parquet. Files are duplicates if they have the
// same directory and name, apart from shard numbers and extension. RemoveDuplicates prefers
// parquet, then JSON lines, then JSON, but keeps shards that exist only in another format. It
// keeps all files without duplicates; Load reports an id that occurs twice.
func RemoveDuplicates(names []string) []string {
	names = preferred(names)
	best := map[string]string{} // key -> best extension
	for _, name := range names {
		key, _ := shardKey(name)
		if ext := extension(name); best[key] == "" || slices.Index(extensions, ext) < slices.Index(extensions, best[key]) {
			best[key] = ext
		}
	}
	type shardID struct{ key, number, total string }
	have := map[shardID]bool{} // shards with the best extension; an empty number means any shard
	for _, name := range names {
		if key, shard := shardKey(name); shard != nil && extension(name) == best[key] {
			have[shardID{key, shard[2], shard[3]}], have[shardID{key, "", shard[3]}] = true, true
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		key, shard := shardKey(name)
		if extension(name) == best[key] {
			return false
		}
		completes := shard != nil && have[shardID{key, "", shard[3]}] && !have[shardID{key, shard[2], shard[3]}]
		return !completes
	})
}

// shardKey returns a name without extension, shard number and hash, and the submatches of
// shardPattern; nil if the file is not a shard.
func shardKey(name string) (string, []string) {
	base, _ := stem(name)
	shard := shardPattern.FindStringSubmatch(base)
	if shard != nil {
		base = shard[1]
	}
	return path.Join(path.Dir(name), base), shard
}

// preferred returns the names, but only the best of several names that differ only in the
// extension.
func preferred(names []string) []string {
	best := map[string]string{} // name without extension -> name to keep
	trimExt := func(name string) string { return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), extension(name)) }
	rank := func(name string) int { return slices.Index(extensions, extension(name)) }
	for _, name := range names {
		if other, ok := best[trimExt(name)]; !ok || rank(name) < rank(other) {
			best[trimExt(name)] = name
		}
	}
	var result []string
	for _, name := range names {
		if best[trimExt(name)] == name {
			result = append(result, name)
		}
	}
	return result
}

// isHidden reports whether Unix or the Hugging Face hub hides a file or directory.
func isHidden(part string) bool { return strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") }

// extension returns the extension of a data file without .gz; "" for other files.
func extension(name string) string {
	name = strings.TrimSuffix(name, ".gz")
	for _, ext := range extensions {
		if strings.HasSuffix(name, ext) {
			return ext
		}
	}
	return ""
}

// stem returns the last element of a name without the extension of a data file; ok reports
// whether the name has such an extension.
func stem(name string) (base string, ok bool) {
	ext := extension(name)
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".gz"), ext), ext != ""
}
