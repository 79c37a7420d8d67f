package atif_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/trajectories/formats/atif"
)

// TestEveryFieldReplaced replaces values of a document by values of each kind. Read must
// fail, or the result must not change when it is written and read repeatedly.
func TestEveryFieldReplaced(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		read, refused, n := 0, 0, 0
		forEachReplacement(doc, func() {
			if n++; n%97 != 0 { // testing all replacements would take too long
				return
			}
			changed, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			f, err := atif.Read("f.json", changed)
			if err != nil {
				refused++
				return
			}
			read++
			reread, err := atif.Read("f.json", rewrite(t, f))
			if err != nil {
				t.Fatalf("cannot read the written document: %v\nof %s", err, changed)
			}
			if second := rewrite(t, reread); string(rewriteDocument(t, second)) != string(second) {
				t.Errorf("differs each time, of %s\n%s", changed, cmp.Diff(string(rewriteDocument(t, second)), string(second)))
			}
		})
		t.Logf("%s: %d read, %d refused", path, read, refused)
		if read < 10 || refused < 10 {
			t.Errorf("%s: %d read, %d refused", path, read, refused)
		}
	}
}

// forEachReplacement calls f after replacing a value within v, for each value and each
// replacement. It restores the value after each call.
func forEachReplacement(v any, f func()) {
	replacements := []any{nil, true, -1.0, "x", []any{}, map[string]any{}}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			original := v[key]
			forEachReplacement(original, f)
			for _, o := range replacements {
				v[key] = o
				f()
			}
			delete(v, key)
			f()
			v[key] = original
		}
	case []any:
		for i, original := range v {
			forEachReplacement(original, f)
			for _, o := range replacements {
				v[i] = o
				f()
			}
			v[i] = original
		}
	}
}
