package export_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// resumedJournal writes a journal that was resumed after its third record. The following
// two records are abandoned.
func resumedJournal(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	addMessage := func(c trajectories.Cause, role model.Role, text string) {
		t.Helper()
		if _, err := j.Append(trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: role, Content: text}, Cause: c}); err != nil {
			t.Fatal(err)
		}
	}
	addMessage(trajectories.CausePrompt, model.User, "do")
	addMessage(trajectories.CauseReply, model.Assistant, "a")
	addMessage(trajectories.CauseObservation, model.User, "of the dead")
	addMessage(trajectories.CauseReply, model.Assistant, "dead")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = trajectories.Reopen(path, trajectories.Resume{Record: 3}); err != nil {
		t.Fatal(err)
	}
	addMessage(trajectories.CauseObservation, model.User, "1")
	addMessage(trajectories.CauseReply, model.Assistant, "b")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestResumed checks that abandoned records are in no row.
func TestResumed(t *testing.T) {
	for _, omit := range []trajectories.Omit{0, trajectories.ForTraining} {
		tr, sum, err := export.ReadJournal(resumedJournal(t), omit)
		if err != nil || len(sum) != 64 {
			t.Fatal(err)
		}
		it := &export.Item{Attempt: tr, InstanceID: "a", Number: 1, SHA256: sum}
		dir, _ := run(t, export.Options{Format: export.Axolotl}, it)
		if got := summary(rows(t, filepath.Join(dir, "train.jsonl"))[0]["messages"]); got != "u:do a:a* u:1 a:b*" {
			t.Errorf("omit %v: %s", omit, got)
		}
	}
}

// TestBadJournals checks that errors contain the path exactly once.
func TestBadJournals(t *testing.T) {
	data, err := os.ReadFile(resumedJournal(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, from, to, want string }{
		{"turns in a circle", `"id":3,"parent_id":2`, `"id":3,"parent_id":5`, "record 3 has parent 5, which is not an earlier record"},
		{"a duplicate ID", `"id":4,"parent_id":3`, `"id":3,"parent_id":2`, "record 3 found, want record 4"},
		{"is of another version", `"mini-1"`, `"mini-9"`, "not a journal of format mini-1"},
		{"has another type", `"id":3,`, `"id":"3",`, ":3: not a record"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.jsonl")
			if err := os.WriteFile(path, []byte(strings.Replace(string(data), tt.from, tt.to, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, omit := range []trajectories.Omit{0, trajectories.ForTraining} {
				_, _, err := export.ReadJournal(path, omit)
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Count(err.Error(), path) != 1 {
					t.Errorf("omit %v: %v", omit, err)
				}
			}
		})
	}
}
