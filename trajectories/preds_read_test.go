package trajectories_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/trajectories"
)

func TestReadPredictions(t *testing.T) {
	one := []trajectories.Prediction{{Model: "m", InstanceID: "a", Patch: "p\n"}}
	null := []trajectories.Prediction{{InstanceID: "a", IsNull: true}}
	tests := map[string]struct {
		content  string
		want     []trajectories.Prediction
		warnings []string
	}{
		"object":        {`{"a":{"model_name_or_path":"m","instance_id":"a","model_patch":"p\n"}}`, one, nil},
		"object, no id": {`{"a":{"model_name_or_path":"m","model_patch":"p\n"}}`, one, nil},
		"list":          {`[{"model_name_or_path":"m","instance_id":"a","model_patch":"p\n"}]`, one, nil},
		"lines":         {`{"model_name_or_path":"m","instance_id":"a","model_patch":"p\n"}` + "\n\n", one, nil},
		"one indented":  {"{\n \"model_name_or_path\": \"m\",\n \"instance_id\": \"a\",\n \"model_patch\": \"p\\n\"\n}", one, nil},
		"windows": {
			"\xef\xbb\xbf" + `{"model_name_or_path":"m","instance_id":"a","model_patch":"p\n"}` + "\r\n", one, nil,
		},
		"other fields": {
			`{"usage":{"cost":1,"log":["{",[]]},"model_name_or_path":"m","instance_id":"a","model_patch":"p\n","MODEL_PATCH":7}`, one, nil,
		},
		"null patch":  {`[{"instance_id":"a","model_patch":null}]`, null, nil},
		"empty patch": {`[{"instance_id":"a","model_patch":""}]`, []trajectories.Prediction{{InstanceID: "a"}}, nil},
		"null id":     {`{"a":{"instance_id":null,"model_name_or_path":null,"model_patch":null}}`, null, nil},
		"bytes stay": {
			`[{"instance_id":"a","model_patch":"\u00e9\ud83d\ude00\r\n\\ud800 \u0000\ufffd é"}]`,
			[]trajectories.Prediction{{InstanceID: "a", Patch: "é😀\r\n\\ud800 \x00\ufffd é"}},
			nil,
		},
		"order": {
			"{\"instance_id\":\"b\",\"model_patch\":null}\n{\"instance_id\":\"a\",\"model_patch\":null}",
			[]trajectories.Prediction{{InstanceID: "b", IsNull: true}, {InstanceID: "a", IsNull: true}},
			nil,
		},
		"again": {
			"{\"instance_id\":\"a\",\"model_name_or_path\":\"x\",\"model_patch\":null}\n{\"instance_id\":\"b\",\"model_patch\":null}\n" +
				`{"instance_id":"a","model_name_or_path":"m","model_patch":"p\n"}`,
			[]trajectories.Prediction{one[0], {InstanceID: "b", IsNull: true}},
			[]string{`line 3: "a" is predicted again; this prediction replaces the one in line 1`},
		},
		"key again": {
			"{\"a\":{\"model_patch\":null},\n\"a\":{\"model_name_or_path\":\"m\",\"model_patch\":\"p\\n\"}}", one,
			[]string{`line 2: "a" is predicted again; this prediction replaces the one in line 1`},
		},
		"another key": {
			"{\n\"x\":{\"instance_id\":\"a\",\"model_patch\":null}}", null,
			[]string{`line 2: the prediction under "x" has the instance_id "a", which is used`},
		},
		"fields again": {
			`[{"instance_id":"b","model_patch":7,"instance_id":"a","model_name_or_path":"x","model_patch":"p\n","model_name_or_path":"m"}]`, one, nil,
		},
		"nothing":      {"{}", nil, nil},
		"empty":        {"", nil, nil},
		"empty list":   {" [ ] ", nil, nil},
		"blank lines":  {"\r\n \n", nil, nil},
		"mixed values": {`[] {} {"instance_id":"a","model_patch":null}`, null, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p")
			require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
			got, err := trajectories.ReadPredictions(path)
			require.NoError(t, err)
			assert.Equal(t, trajectories.Predictions{List: test.want, Warnings: test.warnings}, got, "the result")
		})
	}
}

func TestReadPredictionsRefuses(t *testing.T) {
	refuse := func(t *testing.T, content string) string {
		_, err := trajectories.ParsePredictions("some/file", []byte(content))
		if err == nil || !strings.HasPrefix(err.Error(), "read predictions some/file: ") {
			t.Fatalf("error %v, want the file", err)
		}
		return strings.TrimPrefix(err.Error(), "read predictions some/file: ")
	}
	golden.Cases(t, "testdata/badpredictions.txt", func(t *testing.T, input string) string {
		return refuse(t, strings.TrimSuffix(input, "\n"))
	})
	for name, test := range map[string]struct{ content, err string }{
		"not UTF-8": {"{\"instance_id\":\"a\",\"model_patch\":null}\n{\"instance_id\":\"b\",\n\"model_patch\":\"\xff\"}", "line 3: not UTF-8"},
		"packed":    {"\x1f\x8b\x08\x00", "file is compressed; decompress it with gunzip"},
		"UTF-16":    {"\xff\xfe[\x00]\x00", "line 1: not UTF-8"},
		"too deep":  {strings.Repeat("[", 20_000), "line 1: invalid character '[' exceeded max depth"},
	} {
		if err := refuse(t, test.content); !strings.HasPrefix(err, test.err) {
			t.Errorf("%s: error %s, want %s", name, err, test.err)
		}
	}
	missing := filepath.Join(t.TempDir(), "none.json")
	_, err := trajectories.ReadPredictions(missing)
	assert.ErrorContains(t, err, missing)
}

func TestReadLongPatch(t *testing.T) {
	const limit = 1 << 20
	trajectories.SetMaxPatch(t, limit)
	patch := strings.Repeat("x", limit-1) + "\n"
	file := func(patch string) []byte {
		return []byte(`{"instance_id":"a","model_patch":"` + strings.ReplaceAll(patch, "\n", `\n`) + `"}`)
	}
	got, err := trajectories.ParsePredictions("f", file(patch))
	if err != nil || len(got.List) != 1 || got.List[0].Patch != patch {
		t.Errorf("%d predictions, error %v", len(got.List), err)
	}
	_, err = trajectories.ParsePredictions("f", file(patch+"\n"))
	assert.ErrorContains(t, err, "line 1: model_patch: more than 1048576 bytes")
}

func TestManyWarnings(t *testing.T) {
	got, err := trajectories.ParsePredictions("f", []byte(strings.Repeat("{\"instance_id\":\"a\",\"model_patch\":null}\n", 1000)))
	if err != nil || len(got.Warnings) != 101 || got.Warnings[100] != "line 102: further warnings are not shown" {
		t.Errorf("%d warnings, the last %q, error %v", len(got.Warnings), got.Warnings[len(got.Warnings)-1], err)
	}
}

func TestReadRealPredictions(t *testing.T) {
	for _, path := range realFiles(t, "predictions/*") {
		got, err := trajectories.ReadPredictions(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(got.List) == 0 || len(got.Warnings) > 0 || got.List[0].Model == "" {
			t.Errorf("%s: %d predictions, warnings %q", path, len(got.List), got.Warnings)
		}
		t.Logf("%s: %d predictions, the first of %s", filepath.Base(path), len(got.List), got.List[0].Model)
	}
}

func FuzzParsePredictions(f *testing.F) {
	f.Add([]byte("{\"instance_id\":\"a\",\"model_patch\":null}\r\n{\"instance_id\":\"a\",\"model_patch\":\"\\ud83d\\ude00\"}\n"))
	f.Add([]byte(`{"a":{"model_patch":"x","model_name_or_path":"m"},"b":{"instance_id":"c","model_patch":null}}`))
	f.Add([]byte("\xef\xbb\xbf[{\"instance_id\":\"a\",\"model_patch\":null},7]"))
	f.Add([]byte(`{"a" 1,}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := trajectories.ParsePredictions("f", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "read predictions f: line ") {
				t.Errorf("error without a line: %v", err)
			}
			return
		}
		// Writing and reading predictions again does not change them.
		ids := map[string]bool{}
		for _, p := range got.List {
			if p.InstanceID == "" || ids[p.InstanceID] || p.IsNull && p.Patch != "" {
				t.Errorf("%+v cannot be", p)
			}
			ids[p.InstanceID] = true
		}
		path := filepath.Join(t.TempDir(), "preds.json")
		require.NoError(t, trajectories.WritePredictions(path, got.ByID()))
		again, err := trajectories.ReadPredictions(path)
		require.NoError(t, err)
		for i := range got.List {
			got.List[i].IsNull = false // WritePredictions writes an empty patch
		}
		slices.SortFunc(got.List, func(a, b trajectories.Prediction) int { return strings.Compare(a.InstanceID, b.InstanceID) })
		if diff := cmp.Diff(got.List, again.List); diff != "" || len(again.Warnings) > 0 {
			t.Errorf("warnings %q; (-first +second)\n%s", again.Warnings, diff)
		}
	})
}

// TestHugePredictions checks that ReadPredictions refuses a huge sparse file without
// allocating memory.
func TestHugePredictions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge.json")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	if err := os.Truncate(path, 2<<30); err != nil {
		t.Skip("the file system has no sparse files:", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := trajectories.ReadPredictions(path)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 536870912 bytes") || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
		t.Errorf("it took %d bytes of memory", allocated)
	}
	_, err = trajectories.ReadPredictions(filepath.Dir(path))
	assert.ErrorContains(t, err, "not a regular file", "a folder")
}

func TestPredictionsRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "preds.json")
	want := map[string]trajectories.Prediction{
		"b__b-2": {Model: "m", InstanceID: "b__b-2", Patch: "--- <a>\r\n+é & \u2028\n\n"},
		"a__a-1": {Model: "m", InstanceID: "a__a-1", Patch: ""},
	}
	for range 2 { // the second time the file exists
		require.NoError(t, trajectories.WritePredictions(path, want))
	}
	got, err := trajectories.ReadPredictions(path)
	require.NoError(t, err)
	assert.NoDiff(t, cmp.Diff(want, got.ByID()))
	text := string(mustRead(t, path))
	if strings.Index(text, "a__a-1") > strings.Index(text, "b__b-2") || !strings.Contains(text, "--- <a>") {
		t.Errorf("not sorted, or escaped:\n%s", text)
	}
}

func TestWritePredictionsRefuses(t *testing.T) {
	tests := map[string]struct {
		preds map[string]trajectories.Prediction
		want  string
	}{
		"invalid UTF-8": {map[string]trajectories.Prediction{"a": {InstanceID: "a", Patch: "\xff"}}, "a is not valid UTF-8"},
		"another id":    {map[string]trajectories.Prediction{"a": {InstanceID: "b"}}, `"b" is stored under "a"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "preds.json")
			err := trajectories.WritePredictions(path, test.preds)
			assert.ErrorContains(t, err, test.want)
			_, err = os.Stat(path)
			assert.Error(t, err, "a file was written")
		})
	}
}
