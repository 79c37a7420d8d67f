package datasets_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
)

func read(t *testing.T, name, text string) (datasets.Set, error) {
	t.Helper()
	return datasets.Load(t.Context(), []datasets.Source{datasets.Embedded(name, []byte(text))}, datasets.AllRows)
}

const row = `{"instance_id":"a__b-1","problem_statement":"p","FAIL_TO_PASS":"[\"t::x \"]","PASS_TO_PASS":["y","y"],"version":12.5}`

func TestRead(t *testing.T) {
	for name, text := range map[string]string{
		"rows.jsonl":       row + "\n\n",
		"no line end":      row,
		"rows.json":        "[" + row + "]",
		"rows.jsonl.gz":    zipped(t, row+"\n"),
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
			got := []any{len(set.Instances), in.ID, in.ProblemStatement, in.FailToPass, in.PassToPass, in.Version, len(set.Sources[0].SHA256)}
			want := []any{1, "a__b-1", "p", []string{"t::x "}, []string{"y", "y"}, "12.5", 64}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

// Columns that a run does not use may have any type, and NaN is null.
func TestColumnsOfOtherTypes(t *testing.T) {
	for name, columns := range map[string]string{
		"numbers":           `"created_at":1700000000000,"hints_text":7`,
		"lists and objects": `"created_at":{"$date":1},"hints_text":["a","b"],"other":[[]]`,
		"NaN":               `"created_at":NaN,"hints_text":NaN,"score":Infinity,"low":-Infinity,"FAIL_TO_PASS":NaN,"version":NaN,"image_name":NaN`,
		"NaN in texts":      `"hints_text":"NaN, \"NaN\" \\","created_at":NaN,"NaN":-1,"list":[NaN,-2,NaN]`,
	} {
		t.Run(name, func(t *testing.T) {
			row := `{"instance_id":"a__b-1","problem_statement":"NaN -Infinity",` + columns + `}`
			for _, text := range []string{row, "[" + row + "," + strings.Replace(row, "b-1", "b-2", 1) + "]"} {
				set, err := read(t, "x.jsonl", text)
				if err != nil {
					t.Fatal(err)
				}
				in := set.Instances[0]
				if in.ID != "a__b-1" || in.ProblemStatement != "NaN -Infinity" || len(in.FailToPass) > 0 || in.Version != "" {
					t.Errorf("read %+v", in)
				}
				if _, err := json.Marshal(in.Row); err != nil {
					t.Error(err)
				}
				if name == "NaN in texts" && in.Hints != `NaN, "NaN" \` {
					t.Errorf("hints %q", in.Hints)
				}
			}
		})
	}
}

func TestReadNamesTheRow(t *testing.T) {
	ok := func(id string) string { return `{"instance_id":"` + id + `","problem_statement":""}` }
	tests := []struct{ name, text, want string }{
		{"not JSON", ok("a") + "\n{", "x.jsonl: row 2: not JSON"},
		{"one object", "{\n  \"instance_id\": \"a\"\n}", "an object over several lines; use one row per line"},
		{"not an object", "[1]", "x.jsonl: row 1: it must be an object, not a number"},
		{"null", "null", "row 1: not an object"},
		{"wrong kind", `{"instance_id":7}`, "row 1: instance_id: it must be a string, not a number"},
		{"tests", `{"instance_id":"a","problem_statement":"","FAIL_TO_PASS":"x"}`, "row 1: FAIL_TO_PASS: it must be a list of strings"},
		{"no id", `{"problem_statement":""}`, "row 1: instance_id is missing"},
		{"SWE-bench Pro V1", `{"instance_id":"instance_a__b-1","problem_statement":"","dockerhub_tag":"a.b-1"}`, "row of SWE-bench Pro V1 (dockerhub_tag), which is superseded and which mini does not run; use the tasks of V2"},
		{"a problem that is NaN", `{"instance_id":"a","problem_statement":NaN}`, `row 1: problem_statement is missing (instance "a")`},
		{"no problem", `{"instance_id":"a"}`, `row 1: problem_statement is missing (instance "a")`},
		{"twice", ok("a") + "\n" + ok("b") + "\n" + ok("a"), `rows 1 and 3 have the same instance_id "a"`},
		{"a list that does not end", "[" + ok("a"), "after row 1: the list is not closed"},
		{"empty", "", "x.jsonl: no rows"},
		{"empty list", "[]", "no rows"},
		{"up", ok("../x"), "has a slash"},
		{"slash", ok("a/b"), "has a slash"},
		{"backslash", ok(`a\\b`), "has a slash"},
		{"NUL", ok(`a\u0000b`), "has an unprintable character"},
		{"escape", ok(`a\u001b[2J`), "has an unprintable character"},
		{"dot", ok(".."), "starts with ."},
		{"flag", ok("-rf"), "starts with . or -"},
		{"long", ok(strings.Repeat("x", 201)), "longer than 200"},
		{"a file of the run", ok("Preds.json"), "is the name of a file of the run"},
		{"a folder of the run", ok("verdicts"), "is the name of a file of the run"},
		{"reordering", ok("a\u202eb"), "has an unprintable character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read(t, "x.jsonl", tt.text)
			if err == nil || !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("unsafe for a terminal: %q", err)
			}
		})
	}
}

// TestReadOtherFormats reads common files of other formats: the error names the
// format.
func TestReadOtherFormats(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, want string }{
		"not gzip":         {"x.jsonl.gz", "plain", "x.jsonl.gz: not a gzip file"},
		"not parquet":      {"x.parquet", "plain", "x.parquet: not a parquet file"},
		"a web page":       {"x.jsonl", "\n<!DOCTYPE html><title>Sign in</title>", "a web page, not the data"},
		"a pointer":        {"x.parquet", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"},
		"zstd":             {"x.jsonl.zst", "\x28\xb5\x2f\xfd\x00", "unzstd"},
		"zip":              {"x.jsonl", "PK\x03\x04", "unzip"},
		"Arrow":            {"x.json", "ARROW1\x00\x00", "as parquet"},
		"encrypted":        {"x.parquet", "PARE.....", "encrypted"},
		"parquet, zipped":  {"x.parquet.gz", zipped(t, "PAR1 and so on"), "gunzip"},
		"gzip, cut off":    {"x.jsonl.gz", zipped(t, row)[:40], "the file is truncated"},
		"gzip, damaged":    {"x.jsonl.gz", "\x1f\x8b\x08\xff\xff", "not a gzip file"},
		"parquet, cut off": {"x.parquet", "PAR1....", "not a parquet file, or damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, tt.file, tt.text)
			if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
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

// load loads all rows of files and folders.
func load(t *testing.T, paths ...string) (datasets.Set, error) {
	t.Helper()
	var sources []datasets.Source
	for _, path := range paths {
		src, err := datasets.Local(path, "")
		if err != nil {
			return datasets.Set{}, err
		}
		sources = append(sources, src)
	}
	return datasets.Load(t.Context(), sources, datasets.AllRows)
}
