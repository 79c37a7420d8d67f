package datasets_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
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
	if got := strings.Join(a, "") + strings.Join(b, ""); got != want+want {
		t.Errorf("got %q and %q, want %s: a seed must always give the same order", a, b, want)
	}
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
