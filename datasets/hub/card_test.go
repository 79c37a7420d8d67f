package hub_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/internal/assert"
)

func TestCard(t *testing.T) {
	names := []string{"data/a.jsonl", "data/b.jsonl", "data/sub/c.jsonl", "test.jsonl", "x/train.jsonl"}
	byName := map[string][]string{"test": {"test.jsonl"}, "train": {"x/train.jsonl"}, "": {"data/a.jsonl", "data/b.jsonl", "data/sub/c.jsonl"}}
	card := func(lines ...string) string { return "---\n" + strings.Join(lines, "\n") + "\n---\ntext\n" }
	tests := []struct {
		name, card string
		want       map[string][]string
	}{
		{"no card", "", byName},
		{"no YAML", "# Title\n---\nconfigs: []\n---\n", byName},
		{"no configs", card("license: mit"), byName},
		{"not YAML", card("configs: ]["), byName},
		{"an end that is missing", "---\nconfigs:\n- config_name: a\n  data_files: test.jsonl\n", byName},
		{
			"a list", card("configs:", "- config_name: default", "  data_files:", "  - split: one", "    path: [data/b.jsonl, data/a.jsonl]", "  - split: two", "    path: test.jsonl"),
			map[string][]string{"one": {"data/b.jsonl", "data/a.jsonl"}, "two": {"test.jsonl"}},
		},
		{
			"one star", card("configs:", "- config_name: default", "  data_files:", "  - {split: one, path: data/*}"),
			map[string][]string{"one": {"data/a.jsonl", "data/b.jsonl"}},
		},
		{
			"two stars", card("configs:", "- config_name: default", "  data_files:", "  - {split: one, path: 'data/**'}"),
			map[string][]string{"one": {"data/a.jsonl", "data/b.jsonl", "data/sub/c.jsonl"}},
		},
		{"a string", card("configs:", "- config_name: default", "  data_files: test.jsonl"), map[string][]string{"train": {"test.jsonl"}}},
		{"a list of strings", card("configs:", "- config_name: default", "  data_files: [test.jsonl, ./data/a.jsonl]"), map[string][]string{"train": {"test.jsonl", "data/a.jsonl"}}},
		{
			"a map", card("configs:", "- config_name: default", "  data_files: {x: test.jsonl, y: [data/a.jsonl]}"),
			map[string][]string{"x": {"test.jsonl"}, "y": {"data/a.jsonl"}},
		},
		{"the one that is called default", card("configs:", "- {config_name: a, data_files: data/a.jsonl}", "- {config_name: default, data_files: test.jsonl}"), map[string][]string{"train": {"test.jsonl"}}},
		{"the one that is marked", card("configs:", "- {config_name: default, data_files: data/a.jsonl}", "- {config_name: b, data_files: test.jsonl, default: true}"), map[string][]string{"train": {"test.jsonl"}}},
		{"the first", card("configs:", "- {config_name: a, data_files: data/a.jsonl}", "- {config_name: b, data_files: test.jsonl}"), map[string][]string{"train": {"data/a.jsonl"}}},
		{"a folder", card("configs:", "- {config_name: a, data_dir: x}"), map[string][]string{"train": {"x/train.jsonl"}}},
		{"a folder and a pattern", card("configs:", "- {config_name: a, data_dir: ./data/, data_files: 's*/*'}"), map[string][]string{"train": {"data/sub/c.jsonl"}}},
		{"files that are not there", card("configs:", "- {config_name: a, data_files: '*.csv'}"), byName},
		{"a split that is no name", card("configs:", "- config_name: a", "  data_files:", "  - {split: \"\\e[2J\", path: test.jsonl}"), byName},
		{"Windows", strings.ReplaceAll(card("configs:", "- {config_name: a, data_files: test.jsonl}"), "\n", "\r\n"), map[string][]string{"train": {"test.jsonl"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, hub.SplitsOf(names, []byte(tt.card)), "splits")
		})
	}
}

func TestMatch(t *testing.T) {
	names := []string{"a.json", "b.json", "a/b.json", "a/b/c.json", "a[1].json", "x.y"}
	for pattern, want := range map[string]string{
		"*.json":           "a.json a[1].json b.json",
		"**.json":          "a.json a/b.json a/b/c.json a[1].json b.json",
		"**/*.json":        "a.json a/b.json a/b/c.json a[1].json b.json",
		"a/**":             "a/b.json a/b/c.json",
		"a/**/c.json":      "a/b/c.json",
		"?.json":           "a.json b.json",
		"[a-b].json":       "a.json b.json",
		"[!a].json":        "b.json",
		"a[1].json":        "a[1].json",
		"[":                "",
		"[]":               "",
		"[z-a].json":       "",
		"x.y":              "x.y",
		"x?y":              "x.y",
		"x+y":              "",
		"(.*)":             "",
		"https://h/a.json": "",
	} {
		assert.Equal(t, want, strings.Join(hub.Match(pattern, names), " "), "%s", pattern)
	}
}

// TestCardOfManyPatterns checks that the number of patterns is limited, but not the number
// of plain file names.
func TestCardOfManyPatterns(t *testing.T) {
	var names, patterns []string
	for i := range 2 * hub.MaxPatterns {
		names = append(names, fmt.Sprintf("%04d.jsonl", i))
		patterns = append(patterns, fmt.Sprintf("[%d]%03d.jsonl", i/1000, i%1000))
	}
	for _, tt := range []struct {
		paths []string
		want  int
	}{{names, len(names)}, {patterns, hub.MaxPatterns}} {
		card := "---\nconfigs:\n- data_files:\n    test: ['" + strings.Join(tt.paths, "', '") + "']\n---\n"
		if got := hub.SplitsOf(names, []byte(card)); len(got["test"]) != tt.want {
			t.Errorf("%s and so on: %d files, want %d", tt.paths[0], len(got["test"]), tt.want)
		}
	}
}

// FuzzCard checks that with any card, the files of a split are files of the repository.
func FuzzCard(f *testing.F) {
	f.Add("---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: data/test-*\n---\n")
	f.Add("---\nconfigs:\n- {config_name: a, data_dir: ../.., data_files: {x: ['[', '**']}}\n---\n")
	f.Add("---\na: &a [*a, *a]\nconfigs: [{data_files: *a}]\n---")
	names := []string{"data/test-0.parquet", "b.json"}
	f.Fuzz(func(t *testing.T, card string) {
		for split, files := range hub.SplitsOf(names, []byte(card)) {
			for i, file := range files {
				if file != names[0] && file != names[1] || i > 0 && file == files[0] {
					t.Errorf("split %q has %q", split, files)
				}
			}
		}
	})
}

func TestParseRef(t *testing.T) {
	commit := strings.Repeat("a1", 20)
	for in, want := range map[string]hub.Ref{
		"verified":                         {Repo: "SWE-bench/SWE-bench_Verified", Split: "test"},
		"verified@v1.0":                    {Repo: "SWE-bench/SWE-bench_Verified", Revision: "v1.0", Split: "test"},
		"multimodal":                       {Repo: "SWE-bench/SWE-bench_Multimodal", Split: "dev"},
		"smith":                            {Repo: "SWE-bench/SWE-smith", Split: "train"},
		"org/name":                         {Repo: "org/name"},
		"org/name@refs/convert/parquet":    {Repo: "org/name", Revision: "refs/convert/parquet"},
		"org/name@" + commit:               {Repo: "org/name", Revision: commit},
		"0x.y-z/_a.b":                      {Repo: "0x.y-z/_a.b"},
		"princeton-nlp/SWE-bench_Verified": {Repo: "princeton-nlp/SWE-bench_Verified"},
	} {
		if got, err := hub.ParseRef(in, ""); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", in, got, err, want)
		}
	}
	if got, err := hub.ParseRef("multimodal", "test"); err != nil || got.Split != "test" {
		t.Errorf("with a split: %+v, %v", got, err)
	}
}

func TestParseRefRefuses(t *testing.T) {
	refuse := func(name, split string) {
		_, err := hub.ParseRef(name, split)
		if !errors.Is(err, datasets.ErrData) {
			t.Errorf("%q, split %q: %v", name, split, err)
		} else if text := err.Error(); strings.ContainsAny(text, "\x00\x1b\n") || len(text) > 300 {
			t.Errorf("unsafe for a terminal: %q", text)
		}
	}
	for _, name := range []string{
		"", "verifed", "a/b/c", "../etc", "a/..", "a/b..c", "a--b/c", "-a/b", "/a/b", `a\b/c`,
		"a/b c", "a/b?x=1", "a/b#x", "a/b%2f", "a/b\x1b[2J", "a/b\n", "ä/b", "a/" + strings.Repeat("b", 97),
		"https://huggingface.co/datasets/a/b",
		"a/b@", "verified@", "a/b@..", "a/b@x/../y", "a/b@/x", "a/b@x/", "a/b@x//y", "a/b@x@y",
		"a/b@x\x00", "a/b@-x", "a/b@" + strings.Repeat("x", 201),
	} {
		refuse(name, "")
	}
	for _, split := range []string{"../x", "x y", "\x1b[2J"} {
		refuse("a/b", split)
	}
}
