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

// Splits sorts the data files among names (see IsData), which are
// slash-separated and relative, into splits, each with its files in the order
// of their rows, and without doubles (see OneForm). Files whose names say no
// split are under "": one such file is a whole dataset.
//
// The conventions are those of the Hugging Face hub ("File names and splits"
// in its documentation of datasets, and its branch refs/convert/parquet):
//
//	data/test-00000-of-00002.parquet      a shard; any word may be the split
//	dev-00000-of-00001-0a1b2c3d.parquet   with a hash
//	test.jsonl, lite-test.jsonl.gz        a word that is known as a split
//	test/0000.parquet, default/test/0000.parquet   a folder
//
// A split keeps the name it was found under: "dev" is not made "validation".
func Splits(names []string) map[string][]string {
	splits := map[string][]string{}
	for _, name := range names {
		if IsData(name) {
			split := splitOf(name)
			splits[split] = append(splits[split], name)
		}
	}
	for split, files := range splits {
		splits[split] = OneForm(files)
		slices.SortFunc(splits[split], Natural)
	}
	return splits
}

// PickSplit chooses one of the splits: the wanted one, else "test", else the
// only one. The error lists what there is, and wraps ErrData.
func PickSplit(splits map[string][]string, wanted string) (string, error) {
	names := slices.Sorted(maps.Keys(splits))
	name := cmp.Or(wanted, "test")
	if _, ok := splits[name]; ok {
		return name, nil
	}
	if wanted != "" {
		return "", noSplit(wanted, names)
	}
	switch len(names) {
	case 0:
		return "", &badData{"no data files: .parquet, .jsonl and .json are read, also with .gz"}
	case 1:
		return names[0], nil
	}
	return "", &badData{"which split? there are " + listed(names) + "; choose with --split"}
}

func noSplit(wanted string, names []string) error {
	switch {
	case len(names) == 0:
		return &badData{fmt.Sprintf("no split %.40q, and no data files at all", wanted)}
	case len(names) == 1 && names[0] == "":
		return &badData{fmt.Sprintf("no split %.40q: the file names tell no splits apart; leave --split away", wanted)}
	}
	return &badData{fmt.Sprintf("no split %.40q; there is %s", wanted, listed(names))}
}

// listed names splits for a person; there may be any number, of any spelling.
func listed(names []string) string {
	const most = 8
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		if name == "" {
			shown = append(shown, "files without a split in their names")
			continue
		}
		shown = append(shown, printable(name))
	}
	if len(names) > most {
		shown = append(shown, fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(shown, ", ")
}

var (
	shardName = lazyregexp.New(`^(.+)-(\d{5})-of-(\d{5})(?:-[0-9a-f]{6,64})?$`)
	word      = lazyregexp.New(`^\w+(?:\.\w+)*$`)
	converted = lazyregexp.New(`^(?:partial-)?([A-Za-z]\w*)/\d{4,}\.parquet$`) // the hub converts only the start of what is very large
)

// splitWords are the words that mean a split wherever they stand in a name.
var splitWords = []string{"train", "training", "test", "testing", "eval", "evaluation", "validation", "valid", "val", "dev"}

func splitOf(name string) string {
	base, _ := stem(name)
	folders := strings.Split(path.Dir(name), "/")
	shard := shardName.FindStringSubmatch(base)
	if shard != nil {
		base = shard[1]
	}
	switch found := wordIn(base); {
	case found != "":
		return found
	case shard != nil && word.MatchString(base):
		return base
	}
	tail := converted.FindStringSubmatch(path.Join(folders[len(folders)-1], path.Base(name)))
	if tail != nil && tail[1] != "data" && tail[1] != "default" {
		return tail[1]
	}
	for _, folder := range slices.Backward(folders) {
		if found := wordIn(folder); found != "" {
			return found
		}
	}
	return ""
}

// wordIn finds the last word of text that means a split.
func wordIn(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
	for _, w := range slices.Backward(words) {
		if slices.Contains(splitWords, w) {
			return w
		}
	}
	return ""
}

// Natural compares names as people do: shard 10 follows shard 9, however many digits
// they were given.
func Natural(a, b string) int {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x, y := run(a[i:]), run(b[j:])
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

// run is the longest start of s that is all digits, or has none.
func run(s string) string {
	n := 1
	for n < len(s) && isDigit(s[n]) == isDigit(s[0]) {
		n++
	}
	return s[:n]
}

// missingShard says which shard is not there, of files that are numbered as
// shards; a folder may hold half of a download.
func missingShard(files []string) error {
	have := map[string]map[string]bool{}
	for _, file := range files {
		base, _ := stem(file)
		if m := shardName.FindStringSubmatch(base); m != nil {
			set := path.Join(path.Dir(file), m[1]) + "-%05d-of-" + m[3]
			if have[set] == nil {
				have[set] = map[string]bool{}
			}
			have[set][m[2]] = true
		}
	}
	for _, set := range slices.Sorted(maps.Keys(have)) {
		of := set[len(set)-5:]
		for i := range len(have[set]) + 1 {
			number := fmt.Sprintf("%05d", i)
			if number < of && !have[set][number] {
				return &badData{fmt.Sprintf("%s is missing beside the other shards", printable(strings.Replace(set, "%05d", number, 1)))}
			}
		}
	}
	return nil
}
