package datasets

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Splits groups the data files among names (see IsDataFile), which are slash-separated
// and relative, by split. The files of a split are in the order of their rows, without
// duplicates (see RemoveDuplicates). Files without a split in their names are under "".
//
// The conventions are those of the Hugging Face hub ("File names and splits"
// in its documentation of datasets, and its branch refs/convert/parquet):
//
//	data/test-00000-of-00002.parquet      a shard, with any word as the split
//	dev-00000-of-00001-0a1b2c3d.parquet   with a hash
//	test.jsonl, lite-test.jsonl.gz        a word that is known as a split
//	test/0000.parquet, default/test/0000.parquet   the split as a folder
//
// A split keeps its name in the file names, a known word in lower case: "dev" is not renamed
// to "validation".
func Splits(names []string) map[string][]string {
	splits := map[string][]string{}
	for _, name := range names {
		if IsDataFile(name) {
			split := splitOf(name)
			splits[split] = append(splits[split], name)
		}
	}
	for split, files := range splits {
		splits[split] = RemoveDuplicates(files)
		slices.SortFunc(splits[split], CompareNatural)
	}
	return splits
}

// PickSplit returns wanted, or if that is empty, "test" or else the only split. The error
// lists the splits and wraps ErrData.
func PickSplit(splits map[string][]string, wanted string) (string, error) {
	names := slices.Sorted(maps.Keys(splits))
	name := cmp.Or(wanted, "test")
	if _, ok := splits[name]; ok {
		return name, nil
	}
	if wanted != "" {
		return "", splitError(wanted, names)
	}
	switch len(names) {
	case 0:
		return "", &dataError{"no data files; mini reads .parquet, .jsonl and .json, also with .gz"}
	case 1:
		return names[0], nil
	}
	return "", &dataError{"there are several splits, " + joinNames(names) + "; choose one with --split"}
}

func splitError(wanted string, names []string) error {
	switch {
	case len(names) == 0:
		return &dataError{fmt.Sprintf("no split %.40q, and no data files", wanted)}
	case len(names) == 1 && names[0] == "":
		return &dataError{fmt.Sprintf("no split %.40q: the file names contain no splits; leave out --split", wanted)}
	}
	return &dataError{fmt.Sprintf("no split %.40q; the splits are %s", wanted, joinNames(names))}
}

// joinNames lists names for a message; the names are untrusted.
func joinNames(names []string) string {
	const maxNames = 8
	var texts []string
	for _, name := range names[:min(len(names), maxNames)] {
		if name == "" {
			texts = append(texts, "files without a split in their names")
			continue
		}
		texts = append(texts, printable(name))
	}
	if len(names) > maxNames {
		texts = append(texts, fmt.Sprintf("%d more", len(names)-maxNames))
	}
	return strings.Join(texts, ", ")
}

var (
	shardPattern = lazyregexp.New(`^(.+)-(\d{5})-of-(\d{5})(?:-[0-9a-f]{6,64})?$`)
	wordPattern  = lazyregexp.New(`^\w+(?:\.\w+)*$`)
	// convertedPattern also matches partial conversions of very large datasets.
	convertedPattern = lazyregexp.New(`^(?:partial-)?([A-Za-z]\w*)/\d{4,}\.parquet$`)
)

// splitWords are the words that name a split, at any place in a file name.
var splitWords = []string{"train", "training", "test", "testing", "eval", "evaluation", "validation", "valid", "val", "dev"}

// splitOf returns the split that a file name contains; "" if none.
func splitOf(name string) string {
	base, _ := stem(name)
	folders := strings.Split(path.Dir(name), "/")
	shard := shardPattern.FindStringSubmatch(base)
	if shard != nil {
		base = shard[1]
	}
	switch found := splitWord(base); {
	case found != "":
		return found
	case shard != nil && wordPattern.MatchString(base):
		return base
	}
	tail := convertedPattern.FindStringSubmatch(path.Join(folders[len(folders)-1], path.Base(name)))
	if tail != nil && tail[1] != "data" && tail[1] != "default" {
		return tail[1]
	}
	for _, folder := range slices.Backward(folders) {
		if found := splitWord(folder); found != "" {
			return found
		}
	}
	return ""
}

// splitWord returns the last word of text that names a split, in lower case; "" if none.
func splitWord(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
	for _, w := range slices.Backward(words) {
		if slices.Contains(splitWords, w) {
			return w
		}
	}
	return ""
}

// CompareNatural compares names with numbers by value: shard 10 follows shard 9, with any
// number of leading zeros.
func CompareNatural(a, b string) int {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x, y := digitRun(a[i:]), digitRun(b[j:])
		i, j = i+len(x), j+len(y)
		if isDigit(x[0]) && isDigit(y[0]) {
			x, y := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			continue
		}
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digitRun returns the longest prefix of s with only digits or without any digit; s must not
// be empty.
func digitRun(s string) string {
	n := 1
	for n < len(s) && isDigit(s[n]) == isDigit(s[0]) {
		n++
	}
	return s[:n]
}

// CheckShards returns an error if a shard is missing, for example after an incomplete
// download.
func CheckShards(files []string) error {
	have := map[string]map[string]bool{} // numbers of the shards of each set
	for _, file := range files {
		base, _ := stem(file)
		if m := shardPattern.FindStringSubmatch(base); m != nil {
			set := path.Join(path.Dir(file), m[1]) + "-%05d-of-" + m[3]
			if have[set] == nil {
				have[set] = map[string]bool{}
			}
			have[set][m[2]] = true
		}
	}
	for _, set := range slices.Sorted(maps.Keys(have)) {
		total := set[len(set)-5:]
		for i := range len(have[set]) + 1 {
			number := fmt.Sprintf("%05d", i)
			if number < total && !have[set][number] {
				return &dataError{fmt.Sprintf("%s is missing beside the other shards", printable(strings.Replace(set, "%05d", number, 1)))}
			}
		}
	}
	return nil
}
