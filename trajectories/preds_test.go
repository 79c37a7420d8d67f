package trajectories_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/trajectories"
)

func TestPredictionsRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "preds.json")
	want := map[string]trajectories.Prediction{
		"b__b-2": {Model: "m", InstanceID: "b__b-2", Patch: "--- <a>\r\n+é & \u2028\n\n"},
		"a__a-1": {Model: "m", InstanceID: "a__a-1", Patch: ""},
	}
	for range 2 { // the second time over an existing file
		if err := trajectories.WritePredictions(path, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := trajectories.ReadPredictions(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
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
		"bytes that are no text": {map[string]trajectories.Prediction{"a": {InstanceID: "a", Patch: "\xff"}}, "a is not valid UTF-8"},
		"another id":             {map[string]trajectories.Prediction{"a": {InstanceID: "b"}}, `"b" stands under "a"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "preds.json")
			err := trajectories.WritePredictions(path, test.preds)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("a file was written")
			}
		})
	}
}

func TestReadPredictions(t *testing.T) {
	one := map[string]trajectories.Prediction{"a": {Model: "m", InstanceID: "a", Patch: "p\n"}}
	tests := map[string]struct {
		content string
		want    map[string]trajectories.Prediction
		err     string
	}{
		"object":         {`{"a":{"model_name_or_path":"m","instance_id":"a","model_patch":"p\n"}}`, one, ""},
		"object, no id":  {`{"a":{"model_name_or_path":"m","model_patch":"p\n"}}`, one, ""},
		"list":           {`[{"model_name_or_path":"m","instance_id":"a","model_patch":"p\n"}]`, one, ""},
		"lines":          {`{"model_name_or_path":"m","instance_id":"a","model_patch":"p\n"}` + "\n\n", one, ""},
		"null patch":     {`[{"instance_id":"a","model_patch":null}]`, map[string]trajectories.Prediction{"a": {InstanceID: "a"}}, ""},
		"nothing":        {"{}", map[string]trajectories.Prediction{}, ""},
		"twice":          {`[{"instance_id":"a"},{"instance_id":"a"}]`, nil, "item 1: a stands there twice"},
		"other id":       {`{"a":{"instance_id":"b"}}`, nil, `a: instance_id is "b"`},
		"no id":          {`[{"model_patch":"x"}]`, nil, "item 0: instance_id is missing"},
		"text":           {"hello", nil, "invalid character"},
		"cut":            {`{"a":{"instance_id":"a"`, nil, "unexpected EOF"},
		"a number":       {"7", nil, "neither an object nor a list"},
		"wrong type":     {`[{"instance_id":"a","model_patch":7}]`, nil, "item 0: "},
		"second is torn": {"{\"instance_id\":\"a\"}\n{\"instance", nil, "value 2: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p")
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := trajectories.ReadPredictions(path)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want the file and %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadRealPredictions(t *testing.T) {
	for _, path := range realFiles(t, "predictions/*") {
		got, err := trajectories.ReadPredictions(path)
		if err != nil {
			t.Error(err)
		} else if len(got) == 0 {
			t.Errorf("%s: no predictions", path)
		}
	}
}
