package delegate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/agent/delegate"
	"github.com/minibench/mini/trajectories"
)

// TestJournalsThroughALink: an attempt that goes on may be a stranger's; no
// journal is made where a link in it leads.
func TestJournalsThroughALink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	f := delegate.Folder{Dir: dir, Journal: "journal.jsonl", Name: "children"}
	h := trajectories.Header{InstanceID: "a", Parent: &trajectories.Parent{}}
	if err := os.Symlink(outside, filepath.Join(dir, "children")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.New(h); err == nil {
		t.Error("a journal was made through a link")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside has %v, %v", entries, err)
	}
	if err := os.Remove(filepath.Join(dir, "children")); err != nil {
		t.Fatal(err)
	}
	j, err := f.New(h)
	if err != nil {
		t.Fatal(err)
	}
	if name, _, err := j.Seal(); err != nil || name != "children/1/journal.jsonl" {
		t.Errorf("the journal is %q, %v", name, err)
	}
}
