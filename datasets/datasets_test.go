package datasets_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
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
			require.NoError(t, err)
			in := set.Instances[0]
			got := []any{len(set.Instances), in.ID, in.ProblemStatement, in.FailToPass, in.PassToPass, in.Version, len(set.Sources[0].SHA256)}
			want := []any{1, "a__b-1", "p", []string{"t::x "}, []string{"y", "y"}, "12.5", 64}
			assert.Equal(t, want, got, "row")
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
				require.NoError(t, err)
				in := set.Instances[0]
				if in.ID != "a__b-1" || in.ProblemStatement != "NaN -Infinity" || len(in.FailToPass) > 0 || in.Version != "" {
					t.Errorf("read %+v", in)
				}
				_, err = json.Marshal(in.Row)
				assert.NoError(t, err)
				if name == "NaN in texts" && in.Hints != `NaN, "NaN" \` {
					t.Errorf("hints %q", in.Hints)
				}
			}
		})
	}
}

func TestReadNamesTheRow(t *testing.T) {
	golden.Cases(t, "testdata/badrows.txt", func(t *testing.T, input string) string {
		_, err := read(t, "x.jsonl", strings.TrimSuffix(input, "\n"))
		if !errors.Is(err, datasets.ErrData) || strings.ContainsAny(err.Error(), "\n\x1b\x00\u202e") {
			t.Fatalf("%q, want an error of the data, safe for a terminal", err)
		}
		return err.Error()
	})
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
			require.NoError(t, err)
			assert.Equal(t, tt.want, set.Instances[0].ImageName(), "image")
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

// FuzzRead checks that any input gives rows whose ids are safe as file names, or an error
// that names the file.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		row, "[" + row + "]", "null", `{"instance_id":"a/b"}`, "[[[", `{"FAIL_TO_PASS":""}`,
		`{"instance_id":"a","x":{"instance_id":"b","y":["}",{}]},"problem_statement":"\\\"","instance_id":"c"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.HasPrefix(data, []byte("PAR1")) {
			t.Skip("the library reads parquet files")
		}
		checkSafe(t, data)
	})
}

// checkSafe reads data and checks the rows or the error.
func checkSafe(t *testing.T, data []byte) {
	t.Helper()
	set, err := read(t, "x", string(data))
	if err != nil {
		if !strings.HasPrefix(err.Error(), "x: ") || !errors.Is(err, datasets.ErrData) {
			t.Errorf("error without the file: %v", err)
		}
		return
	}
	for _, in := range set.Instances {
		if in.ID == "" || in.ID != filepath.Base(in.ID) || strings.HasPrefix(in.ID, ".") || strings.ContainsRune(in.ID, 0) {
			t.Errorf("unsafe id %q", in.ID)
		}
		for name, raw := range in.Row {
			if !json.Valid(raw) {
				t.Errorf("column %q is not JSON: %.100q", name, raw)
			}
		}
		in.Fields()
	}
}
