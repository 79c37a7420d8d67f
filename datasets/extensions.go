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
// parquet, then JSON lines, then JSON.
func RemoveDuplicates(names []string) []string {
	rank := func(name string) int { return slices.Index(extensions, extension(name)) }
	key := func(name string) string {
		base, _ := stem(name)
		if shard := shardPattern.FindStringSubmatch(base); shard != nil {
			base = shard[1]
		}
		return path.Join(path.Dir(name), base)
	}
	best := map[string]int{} // rank by key
	for _, name := range names {
		if r, ok := best[key(name)]; !ok || rank(name) < r {
			best[key(name)] = rank(name)
		}
	}
	seen := map[string]bool{} // without .gz
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		plain := strings.TrimSuffix(name, ".gz")
		duplicate := rank(name) != best[key(name)] || seen[plain]
		seen[plain] = true
		return duplicate
	})
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
