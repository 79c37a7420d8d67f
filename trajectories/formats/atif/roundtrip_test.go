package atif_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// readAttempt returns the attempt in a document.
func readAttempt(t *testing.T, name string, data []byte) (*formats.File, *trajectories.Attempt) {
	t.Helper()
	f, err := formats.Read(name, data)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trajectories.Fold(f.Records)
	if err != nil {
		t.Fatal(err)
	}
	return f, tr
}

// write writes a document. It returns the document and the losses.
func write(t *testing.T, tr *trajectories.Attempt, verdict string) ([]byte, []string) {
	t.Helper()
	var b bytes.Buffer
	losses, err := atif.Write(&b, tr, verdict)
	if err != nil {
		t.Fatal(err)
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
			var want bytes.Buffer
			if err := json.Indent(&want, bytes.TrimSpace(data), "", "  "); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.String()+"\n", string(rewritten)); diff != "" {
				t.Errorf("differs (-file +written):\n%s", diff)
			}
		})
	}
}
