//go:build unix

package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A folder from a stranger may hold anything under the names of a run.
func TestReadHostileRun(t *testing.T) {
	dir, _ := ran(t)
	pipe := filepath.Join(dir, "pipe", "attempts", "1")
	if err := os.MkdirAll(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(pipe, "journal.jsonl"), 0o600); err != nil {
		t.Skip(err)
	}
	spoil(t, filepath.Join(dir, "odd", "attempts", "1", "journal.jsonl"), "\x00\x01 no journal\n")
	spoil(t, filepath.Join(dir, "odd", "attempts", "zero", "journal.jsonl"), "")
	spoil(t, filepath.Join(dir, "results.json"), `{"format":"mini-1","instances":{"../../etc":{"class":"submitted"}}}`)
	run := readRun(t, dir)
	var ids []string
	for _, in := range run.Instances {
		ids = append(ids, in.ID)
		if in.ID == "../../etc" && len(run.Files(in)) > 0 {
			t.Errorf("an id became a path: %q", run.Files(in))
		}
	}
	if diff := cmp.Diff([]string{"../../etc", "a", "b", "odd", "pipe"}, ids); diff != "" {
		t.Error(diff)
	}
	if text := fmt.Sprint(run.Unread); !strings.Contains(text, "attempt 1 of pipe: its journal is not a plain file") {
		t.Errorf("unread: %s", text)
	}
}
