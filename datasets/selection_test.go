package datasets_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
)

func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = string(rune('a' + i))
	}
	return ids
}

func TestSelection(t *testing.T) {
	tests := []struct {
		name string
		sel  datasets.Selection
		want string
	}{
		{"all", datasets.Selection{}, "abcdef"},
		{"start and stop", datasets.Selection{Slice: "1:3"}, "bc"},
		{"open ends", datasets.Selection{Slice: ":"}, "abcdef"},
		{"the last two", datasets.Selection{Slice: "-2:"}, "ef"},
		{"beyond the end", datasets.Selection{Slice: "4:99"}, "ef"},
		{"backwards", datasets.Selection{Slice: "::-1"}, "fedcba"},
		{"backwards in twos", datasets.Selection{Slice: "4:0:-2"}, "ec"},
		{"every second", datasets.Selection{Slice: "::2"}, "ace"},
		{"a step without end", datasets.Selection{Slice: "1::9223372036854775807"}, "b"},
		{"nothing", datasets.Selection{Slice: "3:3"}, ""},
		{"a prefix, not the whole", datasets.Selection{Filter: "[a-c]"}, "abc"},
		{"from the start only", datasets.Selection{Filter: "x|b"}, "b"},
		{"named, in the dataset's order", datasets.Selection{IDs: []string{"d", "b"}}, "bd"},
		{"by number", datasets.Selection{IDs: []string{"2", "a"}, Numbered: true}, "ac"},
		{"filter, then slice", datasets.Selection{Filter: "[b-e]", Slice: "1:3"}, "cd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ids, err := tt.sel.Apply(numbered(6))
			if err != nil || strings.Join(ids, "") != tt.want {
				t.Errorf("got %q, %v; want %q", ids, err, tt.want)
			}
		})
	}
}

func TestShuffleIsTheSameEverywhere(t *testing.T) {
	backwards := numbered(6)
	for i := range 3 {
		backwards[i], backwards[5-i] = backwards[5-i], backwards[i]
	}
	a, errA := datasets.Selection{Shuffle: true, Seed: 42}.Apply(numbered(6))
	b, errB := datasets.Selection{Shuffle: true, Seed: 42}.Apply(backwards)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	const want = "cbadef"
	assert.Equal(t, want+want, strings.Join(a, "")+strings.Join(b, ""), "got %q and %q, want %s: a seed must always give the same order", a, b, want)
}

func TestSelectionRefuses(t *testing.T) {
	for want, sel := range map[string]datasets.Selection{
		`--slice "1"`:   {Slice: "1"},
		`--slice "a:b"`: {Slice: "a:b"},
		"step not 0":    {Slice: "::0"},
		`--filter "(": not a regular expression: missing closing )`: {Filter: "("},
		"no row has":      {IDs: []string{"zz"}},
		`"0": no row has`: {IDs: []string{"0"}},
	} {
		if _, err := sel.Apply(numbered(3)); !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", sel, err, want)
		}
	}
}

func TestSplits(t *testing.T) {
	type splits = map[string][]string
	for name, tt := range map[string]struct {
		names []string
		want  splits
	}{
		"shards on the hub": {
			[]string{"README.md", ".gitattributes", "data/test-00001-of-00002.parquet", "data/test-00000-of-00002.parquet", "data/dev-00000-of-00001.parquet"},
			splits{"test": {"data/test-00000-of-00002.parquet", "data/test-00001-of-00002.parquet"}, "dev": {"data/dev-00000-of-00001.parquet"}},
		},
		"shards with a hash":       {[]string{"data/dev-00000-of-00001-cbf4e9a8d1a7e4f2.parquet"}, splits{"dev": {"data/dev-00000-of-00001-cbf4e9a8d1a7e4f2.parquet"}}},
		"a shard of any word":      {[]string{"data/filtered-00000-of-00001.parquet", "data/v1.5-00000-of-00001.parquet"}, splits{"filtered": {"data/filtered-00000-of-00001.parquet"}, "v1.5": {"data/v1.5-00000-of-00001.parquet"}}},
		"a shard named after all":  {[]string{"swe-bench-test-00000-of-00001.parquet"}, splits{"test": {"swe-bench-test-00000-of-00001.parquet"}}},
		"converted by the hub":     {[]string{"default/test/0010.parquet", "default/test/0009.parquet", "default/lite/0000.parquet"}, splits{"test": {"default/test/0009.parquet", "default/test/0010.parquet"}, "lite": {"default/lite/0000.parquet"}}},
		"a part converted":         {[]string{"default/partial-train/0000.parquet"}, splits{"train": {"default/partial-train/0000.parquet"}}},
		"folders":                  {[]string{"test/0000.parquet", "train/a.jsonl"}, splits{"test": {"test/0000.parquet"}, "train": {"train/a.jsonl"}}},
		"plain files":              {[]string{"test.jsonl", "lite-dev.jsonl.gz", "val.json", "valid.json"}, splits{"test": {"test.jsonl"}, "dev": {"lite-dev.jsonl.gz"}, "val": {"val.json"}, "valid": {"valid.json"}}},
		"the name beats the place": {[]string{"test/dev.jsonl"}, splits{"dev": {"test/dev.jsonl"}}},
		"a word within a word":     {[]string{"latest.jsonl", "contest.parquet"}, splits{"": {"contest.parquet", "latest.jsonl"}}},
		"no word":                  {[]string{"verified.jsonl.gz"}, splits{"": {"verified.jsonl.gz"}}},
		"numbers only":             {[]string{"data/2.parquet", "data/10.parquet", "0000.parquet"}, splits{"": {"0000.parquet", "data/2.parquet", "data/10.parquet"}}},
		"several forms":            {[]string{"test.json.gz", "test.jsonl", "data/test-0.parquet", "dev.json", "dev.jsonl.gz"}, splits{"test": {"data/test-0.parquet", "test.jsonl"}, "dev": {"dev.jsonl.gz"}}},
		"a form beside shards":     {[]string{"data/test-00000-of-00001-0a1b2c3d.parquet", "data/test.jsonl", "data/test-00000-of-00002.json"}, splits{"test": {"data/test-00000-of-00001-0a1b2c3d.parquet"}}},
		"forms in two folders":     {[]string{"d/python/test.jsonl", "d/java/test.json"}, splits{"test": {"d/java/test.json", "d/python/test.jsonl"}}},
		"forms of two names":       {[]string{"test-python.jsonl", "test-java.json"}, splits{"test": {"test-java.json", "test-python.jsonl"}}},
		"two names, no word":       {[]string{"python.jsonl", "java.json"}, splits{"": {"java.json", "python.jsonl"}}},
		"shards twice":             {[]string{"test-00000-of-00002.parquet", "test-00001-of-00002.parquet", "test-00000-of-00002.jsonl", "test-00001-of-00002.jsonl.gz"}, splits{"test": {"test-00000-of-00002.parquet", "test-00001-of-00002.parquet"}}},
		"no word, two forms":       {[]string{"a.jsonl.gz", "a.json", "a.jsonl", "b.json"}, splits{"": {"a.jsonl.gz", "b.json"}}},
		"not data":                 {[]string{"x.csv", "config.json", "a/state.json", "dataset_dict.json", "dataset_info.json", "dataset_infos.json", ".cache/test.jsonl", "_meta/test.jsonl", "test.jsonl.zst", "test.parquet.lock"}, splits{}},
		"nothing":                  {nil, splits{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, datasets.Splits(tt.names), "splits")
		})
	}
}

func TestPickSplit(t *testing.T) {
	files := func(names ...string) map[string][]string {
		splits := map[string][]string{}
		for _, name := range names {
			splits[name] = []string{"f"}
		}
		return splits
	}
	for name, tt := range map[string]struct {
		splits    map[string][]string
		wanted    string
		want, err string
	}{
		"wanted":                   {files("dev", "test"), "dev", "dev", ""},
		"test":                     {files("dev", "test", ""), "", "test", ""},
		"the only one":             {files("dev"), "", "dev", ""},
		"the only one has no name": {files(""), "", "", ""},
		"wanted, not there":        {files("dev", "train"), "test", "", `no split "test"; the splits are dev, train`},
		"wanted, no names":         {files(""), "test", "", "leave out --split"},
		"several":                  {files("dev", "train", ""), "", "", "there are several splits, files without a split in their names, dev, train; choose one with --split"},
		"none":                     {nil, "", "", "no data files"},
		"none of what is wanted":   {nil, "test", "", `no split "test", and no data files`},
		"hostile":                  {files("a\x1b[2J", "b"), "", "", `several splits, "a\x1b[2J", b`},
		"many":                     {files(strings.Split("a b c d e f g h i j k", " ")...), "", "", "h, 3 more"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := datasets.PickSplit(tt.splits, tt.wanted)
			if tt.err == "" {
				if err != nil || got != tt.want {
					t.Errorf("got %q, %v; want %q", got, err, tt.want)
				}
				return
			}
			if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
}
