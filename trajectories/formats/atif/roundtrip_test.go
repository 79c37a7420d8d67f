package atif_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// readAttempt returns the attempt in a document.
func readAttempt(t *testing.T, name string, data []byte) (*atif.File, *trajectories.Attempt) {
	t.Helper()
	f, err := atif.Read(name, data)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trajectories.Fold(f.Iter())
	if err != nil {
		t.Fatal(err)
	}
	return f, tr
}

// write writes a document and checks it. It returns the document and the losses.
func write(t *testing.T, tr *trajectories.Attempt, verdict string) ([]byte, []string) {
	t.Helper()
	var b bytes.Buffer
	losses, err := atif.Write(&b, tr, verdict)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []atif.SpecVersion{atif.Spec17, atif.Spec18} {
		for _, p := range atif.Check(b.Bytes(), spec) {
			t.Errorf("written document violates ATIF 1.%d: %s", spec, p)
		}
	}
	return b.Bytes(), losses
}

// TestForeignRoundTrip checks that documents of other agents are unchanged after
// reading and writing.
func TestForeignRoundTrip(t *testing.T) {
	for _, name := range realFiles(t, "golden/*/*trajectory*.json", "mini-swe-agent/*.atif.json", "cases/ok-*.json") {
		t.Run(name, func(t *testing.T) {
			data := realFile(t, name)
			f, tr := readAttempt(t, name, data)
			rewritten, losses := write(t, tr, "")
			if len(losses) > 0 {
				t.Errorf("losses when writing: %q", losses)
			}
			t.Logf("%q", f.Losses)
			var a, b map[string]any
			if json.Unmarshal(data, &a) != nil || json.Unmarshal(rewritten, &b) != nil {
				t.Fatal("no JSON")
			}
			if strings.Contains(strings.Join(f.Losses, "\n"), "has no version") {
				a["schema_version"] = atif.WriteVersion
			}
			withoutNull(a)
			if diff := cmp.Diff(a, b); diff != "" {
				t.Errorf("differs (-file +written):\n%s", diff)
			}
		})
	}
}

// withoutNull removes null fields, which are equivalent to missing ones.
func withoutNull(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
			}
			withoutNull(value)
		}
	case []any:
		for _, value := range v {
			withoutNull(value)
		}
	}
}
