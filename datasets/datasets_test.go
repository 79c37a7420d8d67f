package datasets_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
)

func read(t *testing.T, name, text string) (datasets.Set, error) {
	t.Helper()
	return datasets.Read(t.Context(), name, strings.NewReader(text))
}

const row = `{"instance_id":"a__b-1","problem_statement":"p","FAIL_TO_PASS":"[\"t::x \"]","PASS_TO_PASS":["y","y"],"version":12.5}`

func TestRead(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := fmt.Fprintln(z, row); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"rows.jsonl":       row + "\n\n",
		"no line end":      row,
		"rows.json":        "[" + row + "]",
		"rows.jsonl.gz":    zipped.String(),
		"a list.jsonl":     " \n[" + row + "]",
		"lines.json":       row,
		"byte order.jsonl": "\ufeff" + row,
		"CRLF.jsonl":       row + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(name, ".") {
				name += ".jsonl"
			}
			set, err := read(t, name, text)
			if err != nil {
				t.Fatal(err)
			}
			in := set.Instances[0]
			got := []any{len(set.Instances), in.ID, in.ProblemStatement, in.FailToPass, in.PassToPass, in.Version, len(set.SHA256)}
			want := []any{1, "a__b-1", "p", []string{"t::x "}, []string{"y", "y"}, "12.5", 64}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadNamesTheRow(t *testing.T) {
	ok := func(id string) string { return `{"instance_id":"` + id + `","problem_statement":""}` }
	tests := []struct{ name, text, want string }{
		{"not JSON", ok("a") + "\n{", "x.jsonl: row 2: not JSON"},
		{"not an object", "[1]", "x.jsonl: row 1: an object is needed, found a number"},
		{"null", "null", "row 1: not an object"},
		{"wrong kind", `{"instance_id":7}`, "row 1: instance_id: a string is needed, found a number"},
		{"tests", `{"instance_id":"a","problem_statement":"","FAIL_TO_PASS":"x"}`, "row 1: FAIL_TO_PASS: a list of strings is needed"},
		{"no id", `{"problem_statement":""}`, "row 1: instance_id is missing"},
		{"no problem", `{"instance_id":"a"}`, `row 1: problem_statement is missing (instance "a")`},
		{"twice", ok("a") + "\n" + ok("b") + "\n" + ok("a"), `rows 1 and 3 have the same instance_id "a"`},
		{"a list that does not end", "[" + ok("a"), "after row 1: the list does not end"},
		{"empty", "", "x.jsonl: no rows"},
		{"empty list", "[]", "no rows"},
		{"up", ok("../x"), "has a slash"},
		{"slash", ok("a/b"), "has a slash"},
		{"backslash", ok(`a\\b`), "has a slash"},
		{"NUL", ok(`a\u0000b`), "cannot be printed"},
		{"escape", ok(`a\u001b[2J`), "cannot be printed"},
		{"dot", ok(".."), "begins with ."},
		{"flag", ok("-rf"), "begins with . or -"},
		{"long", ok(strings.Repeat("x", 201)), "longer than 200"},
		{"a file of the run", ok("Preds.json"), "the run's own files"},
		{"reordering", ok("a\u202eb"), "cannot be printed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read(t, "x.jsonl", tt.text)
			if err == nil || !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("unfit for a terminal: %q", err)
			}
		})
	}
	if _, err := read(t, "x.parquet", ""); err == nil || !strings.Contains(err.Error(), "not a dataset") {
		t.Errorf("unknown ending: %v", err)
	}
	if _, err := read(t, "x.jsonl.gz", "plain"); err == nil || !strings.Contains(err.Error(), "not a gzip file") {
		t.Errorf("not gzip: %v", err)
	}
}

func TestImageName(t *testing.T) {
	for name, tt := range map[string]struct{ row, want string }{
		"its own":      {`"image":"x:1"`, "x:1"},
		"image_name":   {`"image_name":"y"`, "y"},
		"docker_image": {`"image":null,"docker_image":"z"`, "z"},
		"official":     {`"repo":"r"`, "swebench/sweb.eval.x86_64.automattic_1776_wp-calypso-1:latest"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := read(t, "x.jsonl", `{"instance_id":"Automattic__wp-calypso-1","problem_statement":"",`+tt.row+`}`)
			if err != nil {
				t.Fatal(err)
			}
			if got := set.Instances[0].ImageName(); got != tt.want {
				t.Errorf("image %q, want %q", got, tt.want)
			}
		})
	}
}

func numbered(n int) []datasets.Instance {
	rows := make([]datasets.Instance, n)
	for i := range rows {
		rows[i].ID = string(rune('a' + i))
	}
	return rows
}

func idsOf(rows []datasets.Instance) string {
	var s strings.Builder
	for _, in := range rows {
		s.WriteString(in.ID)
	}
	return s.String()
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
		{"filter, then slice", datasets.Selection{Filter: "[b-e]", Slice: "1:3"}, "cd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows, err := tt.sel.Apply(numbered(6))
			if err != nil || idsOf(rows) != tt.want {
				t.Errorf("got %q, %v; want %q", idsOf(rows), err, tt.want)
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
	if idsOf(a) != want || idsOf(b) != want {
		t.Errorf("got %s and %s, want %s: the order is part of what a seed means", idsOf(a), idsOf(b), want)
	}
}

func TestSelectionRefuses(t *testing.T) {
	for want, sel := range map[string]datasets.Selection{
		`--slice "1"`:   {Slice: "1"},
		`--slice "a:b"`: {Slice: "a:b"},
		"step not 0":    {Slice: "::0"},
		`--filter "("`:  {Filter: "("},
		"no row has":    {IDs: []string{"zz"}},
	} {
		if _, err := sel.Apply(numbered(3)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", sel, err, want)
		}
	}
}

// The official sets, where they are at hand beside the project.
func TestOfficialRows(t *testing.T) {
	for file, n := range map[string]int{"verified": 500, "lite": 300, "multilingual": 300, "multimodal-dev": 102} {
		t.Run(file, func(t *testing.T) {
			path := filepath.Join("..", "..", "shared", "data", "swebench", file+".jsonl.gz")
			if _, err := os.Stat(path); err != nil {
				t.Skipf("real data is not at hand: %v", err)
			}
			set, err := datasets.Load(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if len(set.Instances) != n {
				t.Errorf("%d rows, want %d", len(set.Instances), n)
			}
			for _, in := range set.Instances {
				if in.ImageName() != datasets.OfficialImage(in.ID) {
					t.Errorf("%s: the row's image is %s, the rule gives %s", in.ID, in.ImageName(), datasets.OfficialImage(in.ID))
				}
				if len(in.FailToPass)+len(in.PassToPass) == 0 || in.Fields()["repo"] != in.Repo {
					t.Errorf("%s: columns are missing", in.ID)
				}
			}
		})
	}
}

// FuzzRead: no input may do anything but give rows that are safe to name files
// after, or an error that names the file.
func FuzzRead(f *testing.F) {
	for _, s := range []string{row, "[" + row + "]", "null", `{"instance_id":"a/b"}`, "[[[", `{"FAIL_TO_PASS":""}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := read(t, "x.jsonl", text)
		if err != nil {
			if !strings.Contains(err.Error(), "x.jsonl") {
				t.Errorf("error without the file: %v", err)
			}
			return
		}
		for _, in := range set.Instances {
			if in.ID == "" || in.ID != filepath.Base(in.ID) || strings.HasPrefix(in.ID, ".") || strings.ContainsRune(in.ID, 0) {
				t.Errorf("unsafe id %q", in.ID)
			}
			in.Fields()
		}
	})
}
