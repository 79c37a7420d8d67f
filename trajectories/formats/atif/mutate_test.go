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

// TestEveryFieldReplaced replaces each value of a document by values of each kind.
// Read must fail, or the result can be written and is stable.
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
		each(doc, func() {
			if n++; n%23 != 0 { // all would take too long
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
			again, err := atif.Read("f.json", rewrite(t, f))
			if err != nil {
				t.Fatalf("cannot read the written document: %v\nof %s", err, changed)
			}
			if second := rewrite(t, again); string(checkStable(t, second)) != string(second) {
				t.Errorf("differs each time, of %s\n%s", changed, cmp.Diff(string(checkStable(t, second)), string(second)))
			}
		})
		t.Logf("%s: %d read, %d refused", path, read, refused)
		if read < 20 || refused < 20 {
			t.Errorf("%s: %d read, %d refused", path, read, refused)
		}
	}
}

// each calls f with every value within v replaced, one at a time.
func each(v any, f func()) {
	others := []any{nil, true, -1.0, "x", []any{}, map[string]any{}}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			was := v[key]
			each(was, f)
			for _, o := range others {
				v[key] = o
				f()
			}
			delete(v, key)
			f()
			v[key] = was
		}
	case []any:
		for i, was := range v {
			each(was, f)
			for _, o := range others {
				v[i] = o
				f()
			}
			v[i] = was
		}
	}
}
