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
	for range 2 { // the second time the file exists
		if err := trajectories.WritePredictions(path, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := trajectories.ReadPredictions(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.ByID()); diff != "" {
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
		"invalid UTF-8": {map[string]trajectories.Prediction{"a": {InstanceID: "a", Patch: "\xff"}}, "a is not valid UTF-8"},
		"another id":    {map[string]trajectories.Prediction{"a": {InstanceID: "b"}}, `"b" is stored under "a"`},
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
