package atif_test

import (
	"bytes"
	"encoding/json"
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

func write(t *testing.T, tr *trajectories.Transcript, verdict string) ([]byte, []string) {
	t.Helper()
	var b bytes.Buffer
	lost, err := atif.Write(&b, tr, verdict)
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
	for _, name := range sharedFiles(t, "golden/*/*trajectory*.json", "mini-swe-agent/*.atif.json", "cases/ok-*.json") {
		t.Run(name, func(t *testing.T) {
			data := sharedFile(t, name)
			f, tr := gather(t, name, data)
			again, lost := write(t, tr, "")
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

// withoutNewIDs takes out the ids that results were given in the order of the
// calls.
func withoutNewIDs(before, after map[string]any) {
	was := results(before)
	for i, r := range results(after) {
		if was[i]["source_call_id"] == nil {
			delete(r, "source_call_id")
		}
	}
}

// results are those of all steps.
func results(doc map[string]any) []map[string]any {
	var all []map[string]any
	steps, _ := doc["steps"].([]any)
	for _, s := range steps {
		step, _ := s.(map[string]any)
		o, _ := step["observation"].(map[string]any)
		of, _ := o["results"].([]any)
		for _, r := range of {
			result, _ := r.(map[string]any)
			all = append(all, result)
		}
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
