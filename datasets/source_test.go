package datasets_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// line returns a row as a line of JSON.
func line(id string) string {
	return fmt.Sprintf(`{"instance_id":%q,"problem_statement":"p"}`+"\n", id)
}

// files creates a folder with files and returns its path.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range contents {
		write(t, dir, name, []byte(text))
	}
	return dir
}

func TestLocal(t *testing.T) {
	rows := string(table(t, plainRows(2)))
	for name, tt := range map[string]struct {
		files       map[string]string
		path, split string
		want        string // the split, and the ids
	}{
		"a file":             {map[string]string{"rows.jsonl": line("a")}, "rows.jsonl", "", " [a]"},
		"its name's split":   {map[string]string{"lite-dev.jsonl": line("a")}, "lite-dev.jsonl", "dev", "dev [a]"},
		"parquet":            {map[string]string{"rows.parquet": rows}, "rows.parquet", "", " [a__b-0 a__b-1]"},
		"a folder of shards": {map[string]string{"data/test-00000-of-00003.parquet": rows, "data/test-00001-of-00003.parquet": string(table(t, []plainRow{{ID: "b"}})), "data/test-00002-of-00003.parquet": string(table(t, []plainRow{{ID: "c"}}))}, ".", "", "test [a__b-0 a__b-1 b c]"},
		"one split of it":    {map[string]string{"dev.jsonl": line("d"), "test.jsonl": line("t")}, ".", "dev", "dev [d]"},
		"what is not data":   {map[string]string{"README.md": "x", ".git/x.jsonl": "x", ".rows.jsonl": "x", "_x/rows.jsonl": "x", "dataset_infos.json": "{}", "rows.jsonl": line("a")}, ".", "", " [a]"},
		"an empty shard":     {map[string]string{"0.jsonl": line("a"), "1.json": "[]"}, ".", "", " [a]"},
		"the order of parts": {map[string]string{"10.jsonl": line("c"), "9.jsonl": line("b"), "009.jsonl.gz": zipped(t, line("a"))}, ".", "", " [b a c]"},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := datasets.Local(filepath.Join(files(t, tt.files), tt.path), tt.split)
			require.NoError(t, err)
			for range 2 { // a source can be read several times
				set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.NoRows)
				if got := fmt.Sprint(src.Split, " ", set.IDs); err != nil || got != tt.want {
					t.Errorf("got %q, %v; want %q", got, err, tt.want)
				}
			}
		})
	}
}

func TestLocalRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		files       map[string]string
		path, split string
		want        string
	}{
		"nothing there":         {nil, "rows.jsonl", "", "rows.jsonl: no such file or folder"},
		"a slip":                {map[string]string{"lite.jsonl": line("a"), "other.jsonl": line("a")}, "lite.jsom", "", "lite.jsom: no such file; did you mean "},
		"no ending":             {map[string]string{"elite.jsonl": line("a"), "lite.json.gz": line("a")}, "lite", "", "/lite.json.gz?"},
		"nothing like it":       {map[string]string{"rows.jsonl": line("a"), "nop.txt": "x"}, "nope.jsonl", "", "nope.jsonl: no such file or folder"},
		"a file of no kind":     {map[string]string{"rows.csv": "a,b"}, "rows.csv", "", "not a dataset; use a .parquet, .jsonl or .json"},
		"an empty file":         {map[string]string{"rows.jsonl": ""}, "rows.jsonl", "", "rows.jsonl: the file is empty"},
		"an empty folder":       {nil, ".", "", "no data files"},
		"another split":         {map[string]string{"dev.jsonl": line("a")}, "dev.jsonl", "test", `no split "test"; the splits are dev`},
		"a split of no name":    {map[string]string{"rows.jsonl": line("a")}, "rows.jsonl", "test", "leave out --split"},
		"which split":           {map[string]string{"dev.jsonl": line("a"), "train.jsonl": line("b")}, ".", "", "there are several splits, dev, train"},
		"half a download":       {map[string]string{"test-00000-of-00003.jsonl": line("a"), "test-00002-of-00003.jsonl": line("b")}, ".", "", "test-00001-of-00003 is missing"},
		"the end of a download": {map[string]string{"data/test-00000-of-00002.jsonl": line("a")}, ".", "", "data/test-00001-of-00002 is missing"},
		"a name for a terminal": {map[string]string{"a\x1b[2Jb.csv": "x"}, "a\x1b[2Jb.csv", "", `a\x1b[2Jb.csv": not a dataset`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := datasets.Local(filepath.Join(files(t, tt.files), tt.path), tt.split)
			if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), tt.want) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestLoadNamesFiles checks errors that occur only when the files of a folder are read.
func TestLoadNamesFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"in two files":  {map[string]string{"1.jsonl": line("x") + line("a"), "2.jsonl": line("a")}, `1.jsonl row 2 and %s/2.jsonl row 1 have the same instance_id "a"; use only one of the files`},
		"a broken row":  {map[string]string{"1.jsonl": line("a"), "d/2.jsonl": line("b") + "{"}, "%s/d/2.jsonl: row 2: not JSON"},
		"no rows":       {map[string]string{"1.json": "[]", "2.json": " "}, "%s: no rows"},
		"one is no row": {map[string]string{"1.jsonl": line("a"), "2.parquet": "x"}, "%s/2.parquet: not a parquet file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := files(t, tt.files)
			_, err := load(t, dir)
			if want := strings.ReplaceAll(tt.want, "%s", dir); !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// TestDanglingLink checks that a broken link is never suggested.
func TestDanglingLink(t *testing.T) {
	dir := files(t, map[string]string{"other.jsonl": line("a"), "rous.jsonl": line("a")})
	for _, name := range []string{"rows.jsonl", "zzws.jsonl"} {
		if err := os.Symlink("gone", filepath.Join(dir, name)); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	for name, want := range map[string]string{"rows.jsonl": ": a broken link", "zzwx.jsonl": ": no such file or folder"} {
		path := filepath.Join(dir, name)
		if _, err := datasets.Local(path, ""); !errors.Is(err, datasets.ErrData) || err.Error() != path+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestLinksToFilesAreFollowed(t *testing.T) {
	dir := files(t, map[string]string{"blobs/0a1b": line("a"), "x/keep.txt": ""})
	if err := os.Symlink("../blobs/0a1b", filepath.Join(dir, "x", "test.jsonl")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	set, err := load(t, dir)
	if err != nil || len(set.Instances) != 1 {
		t.Errorf("%d rows, %v", len(set.Instances), err)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "blobs", "0a1b")))
	if _, err := load(t, dir); !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), "a broken link") {
		t.Errorf("dangling: %v", err)
	}
}

func TestSourceInfo(t *testing.T) {
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	one, two := line("a")+"\n \n", zipped(t, line("b"))
	dir := files(t, map[string]string{"data/test-00000-of-00002.jsonl": one, "data/test-00001-of-00002.jsonl.gz": two, "rows.jsonl": one})
	set, err := load(t, dir, filepath.Join(dir, "rows.jsonl"))
	require.NoError(t, err)
	// The output of `cd DIR && sha256sum data/test-*`.
	printed := sum(one) + "  data/test-00000-of-00002.jsonl\n" + sum(two) + "  data/test-00001-of-00002.jsonl.gz\n"
	want := []datasets.SourceInfo{
		{Name: dir, Split: "test", SHA256: sum(printed), Files: 2, Rows: 2},
		{Name: filepath.Join(dir, "rows.jsonl"), SHA256: sum(one), Files: 1, Rows: 1},
	}
	assert.Equal(t, want, set.Sources, "sources")
	assert.Equal(t, 2, len(set.IDs), "rows, want the 2 different ones")
}

func TestCancelledLoad(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	for _, text := range []string{line("a") + line("b"), "[" + line("a") + "]", string(table(t, plainRows(2)))} {
		_, err := datasets.Load(ctx, []datasets.Source{datasets.Embedded("x", []byte(text))}, datasets.NoRows)
		assert.ErrorIs(t, err, cause, "%.20q", text)
	}
}

// both loads two sources with one row each; a and b are further columns of the rows.
func both(t *testing.T, a, b string) (datasets.Set, error) {
	t.Helper()
	source := func(name, columns string) datasets.Source {
		return datasets.Embedded(name, fmt.Appendf(nil, `{"instance_id":"i","problem_statement":"p"%s}`, columns))
	}
	return datasets.Load(t.Context(), []datasets.Source{source("one", a), source("two", b)}, datasets.AllRows)
}

func TestMergeEqualRows(t *testing.T) {
	for name, tt := range map[string]struct{ a, b, column, want string }{
		"the same":               {`,"x":1`, `,"x":1`, "x", "1"},
		"one has more":           {``, `,"x":1`, "x", "1"},
		"the other has more":     {`,"x":1`, ``, "x", "1"},
		"null is nothing":        {`,"x":null`, `,"x":1`, "x", "1"},
		"nothing is null":        {`,"x":1`, `,"x": null`, "x", "1"},
		"order of keys":          {`,"x":{"a":1,"b":[{"c":2,"d":3}]}`, `,"x":{"b":[{"d":3,"c":2}],"a":1}`, "x", `{"a":1,"b":[{"c":2,"d":3}]}`},
		"spelling of a string":   {`,"x":"é"`, `,"x":"\u00e9"`, "x", `"é"`},
		"spelling of a number":   {`,"x":1500`, `,"x":1.50e3`, "x", "1500"},
		"zero":                   {`,"x":0`, `,"x":-0.00E+7`, "x", "0"},
		"a fraction":             {`,"x":0.05`, `,"x":5e-2`, "x", "0.05"},
		"a list of tests":        {`,"FAIL_TO_PASS":["a","b"]`, `,"FAIL_TO_PASS":"[\"a\", \"b\"]"`, "FAIL_TO_PASS", `["a","b"]`},
		"an empty list of tests": {`,"PASS_TO_PASS":[]`, `,"PASS_TO_PASS":""`, "PASS_TO_PASS", `[]`},
		"version as a number":    {`,"version":"1.2"`, `,"version":1.2`, "version", `"1.2"`},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := both(t, tt.a, tt.b)
			require.NoError(t, err)
			if len(set.Instances) != 1 || len(set.IDs) != 1 || string(set.Instances[0].Row[tt.column]) != tt.want {
				t.Errorf("%d rows, %s; want %s", len(set.IDs), set.Instances[0].Row[tt.column], tt.want)
			}
		})
	}
}

func TestMergeRefusesRowsThatDiffer(t *testing.T) {
	for name, tt := range map[string]struct{ a, b, column string }{
		"a string":                {`,"patch":"x"`, `,"patch":"y"`, "patch"},
		"the first of several":    {`,"b":1,"a":1`, `,"b":2,"a":2`, "a"},
		"sign":                    {`,"x":1`, `,"x":-1`, "x"},
		"power":                   {`,"x":10`, `,"x":100`, "x"},
		"a power beyond bounds":   {`,"x":1e99999999999999999999`, `,"x":2e99999999999999999999`, "x"},
		"number and text":         {`,"x":1`, `,"x":"1"`, "x"},
		"a list as text":          {`,"x":["a"]`, `,"x":"[\"a\"]"`, "x"},
		"order of a list":         {`,"PASS_TO_PASS":["a","b"]`, `,"PASS_TO_PASS":["b","a"]`, "PASS_TO_PASS"},
		"length of a list":        {`,"x":[1]`, `,"x":[1,1]`, "x"},
		"keys":                    {`,"x":{"a":1}`, `,"x":{"b":1}`, "x"},
		"deep below":              {`,"x":[{"a":[1]}]`, `,"x":[{"a":[2]}]`, "x"},
		"false and nothing":       {`,"x":false`, `,"x":""`, "x"},
		"version in another form": {`,"version":"1.10"`, `,"version":1.1`, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := both(t, tt.a, tt.b)
			want := "instance i differs between one and two: column " + tt.column + ";"
			if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

func TestMergeOrderAndSelection(t *testing.T) {
	source := func(name string, ids ...string) datasets.Source {
		var text strings.Builder
		for _, id := range ids {
			text.WriteString(line(id))
		}
		return datasets.Embedded(name, []byte(text.String()))
	}
	different := datasets.Embedded("three", []byte(`{"instance_id":"b","problem_statement":"another"}`))
	sources := []datasets.Source{source("one", "b", "a"), source("two", "c", "a"), different}
	set, err := datasets.Load(t.Context(), sources, datasets.Selection{Filter: "a|c"}.Apply) // without b, whose rows differ
	require.NoError(t, err)
	var ids []string
	for _, in := range set.Instances {
		ids = append(ids, in.ID)
	}
	if diff := cmp.Diff([]string{"a", "c"}, ids); diff != "" || len(set.IDs) != 3 {
		t.Errorf("%d rows (-want +got):\n%s", len(set.IDs), diff)
	}
	_, err = datasets.Load(t.Context(), sources, datasets.AllRows)
	assert.ErrorIs(t, err, datasets.ErrData, "with b")
}

func TestInstanceJSON(t *testing.T) {
	set, err := read(t, "x", `{"problem_statement":"<&>","z":{"b":1.50,"a":2},"instance_id":"i"}`)
	require.NoError(t, err)
	got, err := set.Instances[0].JSON()
	const want = `{
  "instance_id": "i",
  "problem_statement": "<&>",
  "z": {
    "a": 2,
    "b": 1.50
  }
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("JSON (-want +got), %v:\n%s", err, diff)
	}
}
