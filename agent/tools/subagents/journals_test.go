package subagents_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/trajectories"
)

// TestJournalBehindSymlink checks that no journal is created through a symbolic
// link in the folder of an untrusted attempt.
func TestJournalBehindSymlink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	f := subagents.JournalDir{Dir: dir, ParentJournal: "journal.jsonl", Subdir: "children"}
	h := trajectories.Header{InstanceID: "a", Parent: &trajectories.Parent{}}
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "children")))
	if _, err := f.Create(h); err == nil {
		t.Error("a journal was made through a link")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside has %v, %v", entries, err)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "children")))
	j, err := f.Create(h)
	require.NoError(t, err)
	if name, _, err := j.Finish(); err != nil || name != "children/1/journal.jsonl" {
		t.Errorf("the journal is %q, %v", name, err)
	}
}
