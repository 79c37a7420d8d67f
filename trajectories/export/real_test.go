package export_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/formats"
)

// realItems returns attempts of other agents, each twice: one resolved, and one
// unresolved with a different last reply.
func realItems(t *testing.T) []*export.Item {
	t.Helper()
	dir := corpustest.RealData(t, "trajectories")
	var items []*export.Item
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, ".traj") {
			return err
		}
		for attempt, verdict := range []string{"resolved", "unresolved"} {
			for f, err := range formats.OpenAll(path) {
				if err != nil || d.Name() == "dup-tool-call-id.json" {
					continue // package formats tests such files; trainers refuse duplicate IDs
				}
				tr, err := trajectories.Fold(f.Records)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				it := &export.Item{
					Attempt: tr, InstanceID: fmt.Sprintf("%s-%d", strings.TrimPrefix(path, dir), f.Row), Journal: path,
					SHA256: fmt.Sprintf("%.63s%d", f.SHA256, attempt), Number: attempt + 1, Repetition: 1, Verdict: verdict,
				}
				for i := len(tr.Entries) - 1; i >= 0 && attempt > 0; i-- {
					if e := &tr.Entries[i]; e.Cause == trajectories.CauseReply {
						e.Content += " Or not."
						break
					}
				}
				items = append(items, it)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(items, func(a, b *export.Item) int { return strings.Compare(a.InstanceID, b.InstanceID) })
	return items
}

// TestRealAttempts checks the rows of every format for attempts of other agents, with the
// readers that follow trainers.
func TestRealAttempts(t *testing.T) {
	items := realItems(t)
	if len(items) < 100 {
		t.Fatalf("%d attempts", len(items))
	}
	readList := func(name string) func(map[string]any, export.Options) error {
		return func(row map[string]any, o export.Options) error {
			all, err := readMessages(row[name], o)
			if err != nil {
				return err
			}
			if last := all[len(all)-1]; last["role"] != "assistant" || o.Format == export.Axolotl && last["train"] != true {
				return fmt.Errorf("the last message is %v", last)
			}
			for _, m := range all {
				if m["train"] == true && m["role"] != "assistant" {
					return fmt.Errorf("learned: %v", m)
				}
			}
			return nil
		}
	}
	readCompletions := func(names ...string) func(map[string]any, export.Options) error {
		return func(row map[string]any, o export.Options) error {
			var errs []error
			for _, name := range names {
				before, _ := row["prompt"].([]any)
				after, _ := row[name].([]any)
				all, err := readMessages(append(append([]any{}, before...), after...), o)
				if err == nil && (len(after) != 1 || all[len(all)-1]["role"] != "assistant") {
					err = fmt.Errorf("%s: %v", name, after)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}
	}
	for _, tt := range []struct {
		format string
		rows   int // minimum
		read   func(map[string]any, export.Options) error
	}{
		{export.OpenAI, 130, readList("messages")},
		{export.Axolotl, 130, readList("messages")},
		{export.ShareGPT, 130, readTurns},
		{export.PromptCompletion, 700, readCompletions("completion")},
		{export.KTO, 700, readCompletions("completion")},
		{export.DPO, 65, readCompletions("chosen", "rejected")},
	} {
		t.Run(tt.format, func(t *testing.T) {
			o, err := export.Options{Format: tt.format}.Validate()
			if err != nil {
				t.Fatal(err)
			}
			dir, r := run(t, o, items...)
			t.Logf("%d of %d exported; left out %v, losses %v", r.Exported, r.Attempts, r.Dropped, r.Losses)
			all := rows(t, filepath.Join(dir, "train.jsonl"))
			if len(all) < tt.rows {
				t.Errorf("%d rows", len(all))
			}
			for i, row := range all {
				if err := tt.read(row, o); err != nil {
					t.Errorf("row %d, of %v: %v", i+1, row["instance_id"], err)
				}
			}
		})
	}
}
