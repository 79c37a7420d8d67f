package atif_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/atif"
)

// gather is the attempt of a document.
func gather(t *testing.T, name string, data []byte) (*atif.File, *trajectories.Transcript) {
	t.Helper()
	f, err := atif.Read(name, data)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trajectories.Gather(f.All())
	if err != nil {
		t.Fatal(err)
	}
	return f, tr
}

func write(t *testing.T, tr *trajectories.Transcript, o atif.Options) ([]byte, []string) {
	t.Helper()
	var b bytes.Buffer
	lost, err := atif.Write(&b, tr, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []atif.Edition{atif.Edition7, atif.Edition8} {
		for _, p := range atif.Check(b.Bytes(), e) {
			t.Errorf("what was written breaks a rule of edition %d: %s", e, p)
		}
	}
	return b.Bytes(), lost
}

// TestForeignRoundTrip reads the documents of other agents, writes them again
// and looks for any difference.
func TestForeignRoundTrip(t *testing.T) {
	found := 0
	for _, pattern := range []string{"golden/*/*trajectory*.json", "mini-swe-agent/*.atif.json", "cases/ok-*.json"} {
		files, err := filepath.Glob(filepath.Join(shared, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			name := strings.TrimPrefix(path, shared+"/")
			found++
			t.Run(name, func(t *testing.T) {
				data := sharedFile(t, name)
				f, tr := gather(t, name, data)
				again, lost := write(t, tr, atif.Options{})
				if len(lost) > 0 {
					t.Errorf("lost on the way back: %q", lost)
				}
				t.Logf("%q", f.Lost)
				var a, b map[string]any
				if json.Unmarshal(data, &a) != nil || json.Unmarshal(again, &b) != nil {
					t.Fatal("no JSON")
				}
				said := strings.Join(f.Lost, "\n")
				if strings.Contains(said, "in the order of the calls") {
					withoutNewIDs(a, b)
				}
				if strings.Contains(said, "does not say which version") {
					a["schema_version"] = atif.Version
				}
				withoutNull(a)
				if diff := cmp.Diff(a, b); diff != "" {
					t.Errorf("differs (-file +written):\n%s", diff)
				}
			})
		}
	}
	if found == 0 {
		t.Skip("the real trajectories are not here")
	}
}

// withoutNewIDs takes out the ids that results were given in the order of the
// calls.
func withoutNewIDs(before, after map[string]any) {
	for i, s := range results(after) {
		if old := results(before)[i].(map[string]any); old["source_call_id"] == nil {
			delete(s.(map[string]any), "source_call_id")
		}
	}
}

// results are those of all steps.
func results(doc map[string]any) []any {
	var all []any
	for _, s := range doc["steps"].([]any) {
		o, _ := s.(map[string]any)["observation"].(map[string]any)
		of, _ := o["results"].([]any)
		all = append(all, of...)
	}
	return all
}

// withoutNull takes out fields that are null, which is as if they were not there.
func withoutNull(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, of := range v {
			if of == nil {
				delete(v, key)
			}
			withoutNull(of)
		}
	case []any:
		for _, of := range v {
			withoutNull(of)
		}
	}
}
