package trajectories_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := trajectories.ReadPredictions(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(trajectories.Predictions{List: test.want, Warnings: test.warnings}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestReadPredictionsRefuses(t *testing.T) {
	tests := map[string]struct{ content, err string }{
		"no id":             {`[{"model_patch":"x"}]`, "line 1: instance_id is missing"},
		"no id on a line":   {"{\"instance_id\":\"a\",\"model_patch\":null}\n{\"model_patch\":\"x\"}", "line 2: instance_id is missing"},
		"empty id":          {`{"":{"model_patch":"x"}}`, "line 1: instance_id is missing or empty"},
		"id is a number":    {"\n{\"instance_id\":7}", "line 2: instance_id: a string expected, got a number"},
		"text":              {"hello", "line 1: invalid character 'h'"},
		"a number":          {"7", "line 1: an object or a list of predictions expected, got a number"},
		"a string":          {"\n\"x\"", "line 2: an object or a list of predictions expected, got a string"},
		"null":              {"null", "line 1: an object or a list of predictions expected, got null"},
		"list of strings":   {"[\"a\",\n\"b\"]", "line 1: a prediction must be an object, got a string"},
		"object of lists":   {"{\"a\":{\"model_patch\":null},\n\"b\":[]}", "line 2: a prediction must be an object, got a list"},
		"patch is a number": {"[\n{\"instance_id\":\"a\",\"model_patch\":7}]", "line 2: model_patch: a string expected, got a number"},
		"patch is a list":   {`[{"instance_id":"a","model_patch":["x"]}]`, "line 1: model_patch: a string expected, got a list"},
		"patch is true":     {`[{"instance_id":"a","model_patch":true}]`, "line 1: model_patch: a string expected, got true or false"},
		"model is a number": {`[{"instance_id":"a","model_name_or_path":1}]`, "line 1: model_name_or_path: a string expected"},
		"cut":               {"{\"a\":\n{\"instance_id\":\"a\"", "line 2: unexpected end of JSON input"},
		"cut between":       {"[{\"instance_id\":\"a\",\"model_patch\":null},\n", "line 1: unexpected end of JSON input"},
		"second is torn":    {"{\"instance_id\":\"a\",\"model_patch\":null}\n{\"instance", "line 2: unexpected end"},
		"bad within":        {"[\n{\"instance_id\":\"a\",\"model_patch\":null},\n{\"instance_id\":\n'b'}]", `line 4: invalid character '\''`},
		"comma at the end":  {"{\"a\":{\"model_patch\":null},\n}", "line 2: invalid character '}'"},
		"comma after":       {"{\"a\":{\"model_patch\":null}}\n,", "line 2: invalid character ','"},
		"no comma":          {"[{\"instance_id\":\"a\",\"model_patch\":null}\n{\"instance_id\":\"b\",\"model_patch\":null}]", "line 2: invalid character '{'"},
		"not UTF-8":         {"{\"instance_id\":\"a\",\"model_patch\":null}\n{\"instance_id\":\"b\",\n\"model_patch\":\"\xff\"}", "line 3: not UTF-8"},
		"half of a pair":    {`[{"instance_id":"a","model_patch":"\ud83d x"}]`, "line 1: model_patch: half of a surrogate pair"},
		"other half":        {`[{"instance_id":"a","model_patch":"\\\udE00"}]`, "line 1: model_patch: half of a surrogate pair"},
		"another key":       {"{\"instance_id\":\"a\",\"model_patch\":null}\n{\"instance_id\":\"b\",\"model\":\"m\",\"prediction\":\"diff --git a/x b/x\\n\"}", `line 2: model_patch is missing (did you mean "prediction"?)`},
		"a shorter key":     {`[{"instance_id":"a","patch":""}]`, `line 1: model_patch is missing (did you mean "patch"?)`},
		"within an object":  {`[{"instance_id":"a","test_result":{"report":{},"git_patch":"x"}}]`, `line 1: model_patch is missing (did you mean "test_result.git_patch"?)`},
		"a key with a diff": {`{"a":{"answer":"diff --git a/x b/x\n","dispatch":"x"}}`, `line 1: model_patch is missing (did you mean "answer"?)`},
		"no key":            {`[{"instance_id":"a","model_name_or_path":"m"}]`, `line 1: model_patch is missing; for an empty patch write "model_patch": null`},
		"packed":            {"\x1f\x8b\x08\x00", "file is compressed; decompress it with gunzip"},
		"UTF-16":            {"\xff\xfe[\x00]\x00", "line 1: not UTF-8"},
		"too deep":          {strings.Repeat("[", 20_000), "line 1: invalid character '[' exceeded max depth"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := trajectories.ParsePredictions("some/file", []byte(test.content))
			if err == nil || !strings.Contains(err.Error(), "read predictions some/file: "+test.err) {
				t.Errorf("error %v, want the file and %q", err, test.err)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "none.json")
	if _, err := trajectories.ReadPredictions(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("error %v, want the name of the file", err)
	}
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
	if err == nil || !strings.Contains(err.Error(), "line 1: model_patch: more than 1048576 bytes") {
		t.Errorf("error %v, want the bound", err)
	}
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
		if err := trajectories.WritePredictions(path, got.ByID()); err != nil {
			t.Fatal(err)
		}
		again, err := trajectories.ReadPredictions(path)
		if err != nil {
			t.Fatal(err)
		}
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
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
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
	if _, err := trajectories.ReadPredictions(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}
