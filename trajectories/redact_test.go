package trajectories_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/trajectories"
)

// TestJournalRedacts checks that Append removes keys from records, also in base64, and that
// every record can still be read.
func TestJournalRedacts(t *testing.T) {
	key := []byte("sk-0123456789")
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	forms := [][]byte{key, []byte("c2stMDEyMzQ1Njc4O")}
	header := trajectories.Header{InstanceID: "a", Attempt: 1, Redact: func(text []byte) []byte {
		for _, form := range forms {
			text = bytes.ReplaceAll(text, form, []byte("[redacted]"))
		}
		return text
	}}
	j, err := trajectories.Create(path, header)
	if err != nil {
		t.Fatal(err)
	}
	for give, want := range map[string]string{
		"x sk-0123456789 y":      "x [redacted] y",
		"\xffa\x00sk-0123456789": "\xffa\x00[redacted]",
		"1e400 is no number":     "1e400 is no number",
	} {
		rec, err := j.Append(trajectories.TypeOutcome, trajectories.Outcome{Submission: trajectories.Bytes(give), Steps: 1 << 60})
		if err != nil {
			t.Fatal(err)
		}
		var out trajectories.Outcome
		if err := json.Unmarshal(rec.Data, &out); err != nil || string(out.Submission) != want || out.Steps != 1<<60 || rec.Redacted != (give != want) {
			t.Errorf("%q became %q (%d steps, redacted %t): %v", give, out.Submission, out.Steps, rec.Redacted, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range trajectories.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d records, want 4", n)
	}
}
