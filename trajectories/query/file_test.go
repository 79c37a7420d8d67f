package query_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/trajectories/query"
)

// FileMayContain has no false negatives.
func TestFileMayContain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"output":"a \u001b[31m \"Quoted\" <tag> \\ path"}`)
	for needle, want := range map[string]bool{
		`"quoted" <tag>`: true, `say "quoted"`: false, "QUOTED": false, "Quoted": true, `\ path`: true, "\x1b[31m": true, "other": false,
	} {
		if query.FileMayContain(path, needle) != want {
			t.Errorf("%q: %v", needle, !want)
		}
	}
	write(`{"output":{"base64":"/w=="}}`)
	if !query.FileMayContain(path, "other") {
		t.Error("a journal with base64 is skipped")
	}
}
