package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// TestGolden compares the indented rows of every format with a golden file.
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    export.Options
	}{
		{"openai", export.Options{Format: export.OpenAI}},
		{"openai-inline-text", export.Options{Format: export.OpenAI, Reasoning: export.ReasoningInline, ToolArguments: export.ArgumentsText}},
		{"sharegpt", export.Options{Format: export.ShareGPT}},
		{"sharegpt-drop", export.Options{Format: export.ShareGPT, Reasoning: export.ReasoningDrop}},
		{"axolotl", export.Options{Format: export.Axolotl}},
		{"axolotl-mask", export.Options{Format: export.Axolotl, FormatErrors: export.FormatErrorsMask}},
		{"prompt-completion", export.Options{Format: export.PromptCompletion}},
		{"prompt-completion-mask", export.Options{Format: export.PromptCompletion, FormatErrors: export.FormatErrorsMask, ToolArguments: export.ArgumentsText}},
		{"kto", export.Options{Format: export.KTO}},
		{"dpo", export.Options{Format: export.DPO}},
		{"dpo-rest", export.Options{Format: export.DPO, Completion: export.CompletionRest}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := run(t, tt.o, allAttempts()...)
			data, err := os.ReadFile(filepath.Join(dir, "train.jsonl"))
			require.NoError(t, err)
			var indented bytes.Buffer
			for line := range bytes.Lines(data) {
				require.NoError(t, json.Indent(&indented, line, "", " "))
			}
			golden.Check(t, filepath.Join("testdata", tt.name+".golden"), indented.Bytes())
		})
	}
}

func TestDatasetInfo(t *testing.T) {
	dir, _ := run(t, export.Options{Format: export.ShareGPT}, allAttempts()...)
	data, err := os.ReadFile(filepath.Join(dir, "dataset_info.json"))
	require.NoError(t, err)
	golden.Check(t, filepath.Join("testdata", "dataset_info.golden"), data)
}

// TestFiles compares the files of formats without rows with golden files.
func TestFiles(t *testing.T) {
	for _, tt := range []struct {
		format, golden, want string
		s                    *builder
	}{
		{export.Traj, "traj", "owner__lib-1/owner__lib-1.traj.json", textAttempt()},
		{export.Traj, "traj-calls", "owner__lib-1/owner__lib-1.traj.json", callAttempt()},
		{export.ATIF, "atif", "owner__lib-1/owner__lib-1.json", textAttempt()},
		{export.ATIF, "atif-calls", "owner__lib-1/owner__lib-1.json", callAttempt()},
		{export.Preds, "preds", "preds.json", textAttempt()},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			dir, r := run(t, export.Options{Format: tt.format}, item("owner__lib-1", 1, "resolved", tt.s.withExecutions()))
			if len(r.Files) != 1 || r.Files[0].Name != tt.want {
				t.Fatalf("files %+v, want %s", r.Files, tt.want)
			}
			data, err := os.ReadFile(filepath.Join(dir, tt.want))
			require.NoError(t, err)
			golden.Check(t, filepath.Join("testdata", tt.golden+".golden"), data)
		})
	}
}

// resumedJournal writes a journal that was resumed after its third record. The following
// two records are abandoned.
func resumedJournal(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a", Attempt: 1})
	require.NoError(t, err)
	addMessage := func(c trajectories.Cause, role model.Role, text string) {
		t.Helper()
		_, err := j.Append(trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: role, Content: text}, Cause: c})
		require.NoError(t, err)
	}
	addMessage(trajectories.CausePrompt, model.User, "do")
	addMessage(trajectories.CauseReply, model.Assistant, "a")
	addMessage(trajectories.CauseObservation, model.User, "of the dead")
	addMessage(trajectories.CauseReply, model.Assistant, "dead")
	require.NoError(t, j.Close())
	if j, err = trajectories.Reopen(path, trajectories.Resume{Record: 3}); err != nil {
		t.Fatal(err)
	}
	addMessage(trajectories.CauseObservation, model.User, "1")
	addMessage(trajectories.CauseReply, model.Assistant, "b")
	require.NoError(t, j.Close())
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
		assert.Equal(t, "u:do a:a* u:1 a:b*", summary(rows(t, filepath.Join(dir, "train.jsonl"))[0]["messages"]), "omit %v", omit)
	}
}

// TestBadJournals checks that errors contain the path exactly once.
func TestBadJournals(t *testing.T) {
	data, err := os.ReadFile(resumedJournal(t))
	require.NoError(t, err)
	for _, tt := range []struct{ name, from, to, want string }{
		{"turns in a circle", `"id":3,"parent_id":2`, `"id":3,"parent_id":5`, "record 3 has parent 5, which is not an earlier record"},
		{"a duplicate ID", `"id":4,"parent_id":3`, `"id":3,"parent_id":2`, "record 3 found, want record 4"},
		{"is of another version", `"mini-1"`, `"mini-9"`, "not a journal of format mini-1"},
		{"has another type", `"id":3,`, `"id":"3",`, ":3: not a record"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(data), tt.from, tt.to, 1)), 0o600))
			for _, omit := range []trajectories.Omit{0, trajectories.ForTraining} {
				_, _, err := export.ReadJournal(path, omit)
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Count(err.Error(), path) != 1 {
					t.Errorf("omit %v: %v", omit, err)
				}
			}
		})
	}
}

// summary returns a word per message: the first letter of the role, the content, and
// * if it is trained on.
func summary(list any) string {
	var words []string
	all, _ := list.([]any)
	for _, v := range all {
		m, _ := v.(map[string]any)
		word := fmt.Sprintf("%.1s:%v", m["role"], m["content"])
		if m["train"] == true {
			word += "*"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// withDemonstration returns an attempt whose prompt contains a reply with a tool call, and
// the result of the call.
func withDemonstration() *builder {
	s := newAttempt("m", true)
	s.t.Entries = nil
	return s.message(trajectories.CausePrompt, "do").
		add(trajectories.CausePrompt, model.Message{Role: model.Assistant, Content: "demo", ToolCalls: []model.ToolCall{call("d", "ls")}}).
		result("d", "shown")
}

// TestTrained checks that only replies that the model wrote in this attempt, and that
// were not rejected, are trained on, and that roles alternate.
func TestTrained(t *testing.T) {
	bare := func(tools bool) *builder {
		s := newAttempt("m", tools)
		s.t.Entries = nil
		return s.message(trajectories.CausePrompt, "do")
	}
	branch := bare(false).reply("", "a").message(trajectories.CauseObservation, "1").reply("", "b").message(trajectories.CauseObservation, "2").reply("", "c")
	branch.t.Header.Origin = &trajectories.Origin{Record: branch.t.Entries[3].Record + 1}
	gaveUp := bare(false).reply("", "a").message(trajectories.CauseObservation, "1").reply("", "bad").withOutcome("RepeatedFormatError")
	tool := func(id, text string, c trajectories.Cause) func(*builder) *builder {
		return func(s *builder) *builder {
			return s.add(c, model.Message{Role: model.Tool, ToolCallID: id, Content: text})
		}
	}
	for _, tt := range []struct {
		name string
		s    *builder
		want string   // the row of Axolotl
		each []string // the rows of prompt-completion
	}{
		{
			"a demonstration", withDemonstration().message(trajectories.CausePrompt, "now").reply("", "a", call("x", "ls")),
			"u:do a:demo t:shown u:now a:a*",
			[]string{"1 u:do a:demo t:shown u:now > a:a"},
		},
		{
			"format errors", bare(false).reply("", "bad").message(trajectories.CauseFormatError, "no").reply("", "a").
				message(trajectories.CauseObservation, "1").reply("", "bad").message(trajectories.CauseFormatError, "no").reply("", "b"),
			"u:do a:a* u:1 a:b*",
			[]string{"2 u:do > a:a", "4 u:do a:a u:1 > a:b"},
		},
		{"given up", gaveUp, "u:do a:a*", []string{"1 u:do > a:a"}},
		{
			"a command that the user refused", bare(false).reply("", "rm").message(trajectories.CauseRejection, "no").reply("", "a"),
			"u:do a:a*",
			[]string{"2 u:do > a:a"},
		},
		{
			"calls that were not run", tool("y", "not run", trajectories.CauseNotRun)(
				bare(true).reply("", "a", call("x", "ls"), call("y", "pwd")).result("x", "1")).reply("", "b", call("z", "ls")),
			"u:do a:a* t:1 t:not run a:b*",
			[]string{"1 u:do > a:a", "2 u:do a:a t:1 t:not run > a:b"},
		},
		{
			"a patch that does not apply", bare(false).reply("", "a").message(trajectories.CauseMalformedPatch, "no patch").reply("", "b"),
			"u:do a:a* u:no patch a:b*",
			[]string{"1 u:do > a:a", "2 u:do a:a u:no patch > a:b"},
		},
		{
			"a branch", branch,
			"u:do a:a u:1 a:b u:2 a:c*",
			[]string{"3 u:do a:a u:1 a:b u:2 > a:c"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := run(t, export.Options{Format: export.Axolotl}, item("a", 1, "", tt.s))
			assert.Equal(t, tt.want, summary(rows(t, filepath.Join(dir, "train.jsonl"))[0]["messages"]), "the row")
			dir, _ = run(t, export.Options{Format: export.PromptCompletion}, item("a", 1, "", tt.s))
			var each []string
			for _, row := range rows(t, filepath.Join(dir, "train.jsonl")) {
				each = append(each, fmt.Sprintf("%v %s > %s", row["step"], summary(row["prompt"]), summary(row["completion"])))
			}
			assert.Equal(t, tt.each, each, "rows")
		})
	}
}

// TestUnmasked checks that formats that cannot mask replies refuse attempts with replies
// that the model did not write, and count other replies that should not be trained on.
func TestUnmasked(t *testing.T) {
	branch := textAttempt()
	branch.t.Header.Origin = &trajectories.Origin{Record: 4}
	for _, format := range []string{export.OpenAI, export.ShareGPT} {
		dir := filepath.Join(t.TempDir(), "out")
		demo := withDemonstration().reply("", "a", call("x", "ls"))
		r, _ := export.Run(t.Context(), export.Config{Options: export.Options{Format: format}, Dir: dir},
			attempts(item("a", 1, "", branch), item("b", 1, "", demo)))
		if r.Exported != 1 || len(r.Dropped) != 1 || r.Losses["replies inherited from another attempt, which are trained on"] != 1 {
			t.Errorf("%s: %d exported, dropped %v, losses %v", format, r.Exported, r.Dropped, r.Losses)
		}
	}
}

// TestPairsAreTrained checks that both completions of a pair start with a trained reply.
func TestPairsAreTrained(t *testing.T) {
	branch := textAttempt()
	branch.t.Header.Origin = &trajectories.Origin{Record: 4}
	other := newAttempt("model-a", false).reply("", "Another way.").withOutcome("Submitted")
	dir := filepath.Join(t.TempDir(), "out")
	r, err := export.Run(t.Context(), export.Config{Options: export.Options{Format: export.DPO}, Dir: dir},
		attempts(item("a", 1, "resolved", branch), item("a", 2, "unresolved", other)))
	if err == nil || r.Dropped["no attempt that it can be paired with"] != 2 {
		t.Errorf("a pair with a reply of the attempt before: %v, %+v", err, r)
	}
	dir, _ = run(t, export.Options{Format: export.KTO, Completion: export.CompletionRest}, item("a", 1, "resolved", branch))
	row := rows(t, filepath.Join(dir, "train.jsonl"))[0]
	if rest := summary(row["completion"]); !strings.HasPrefix(rest, "a:```bash\nsed") {
		t.Errorf("the completion begins with %.40q", rest)
	}
}

// TestPairsAreCounted checks that the attempts of a pair count as exported, and that other
// attempts on the instance count as dropped, each with its reason.
func TestPairsAreCounted(t *testing.T) {
	other := func() *builder {
		return newAttempt("model-a", false).reply("", "Another way.").withOutcome("Submitted")
	}
	rowCounts := map[string]int{}
	dir := filepath.Join(t.TempDir(), "out")
	r, err := export.Run(t.Context(), export.Config{
		Options: export.Options{Format: export.DPO}, Dir: dir,
		OnWritten: func(it *export.Item, _ string, rows int) { rowCounts[fmt.Sprint(it.Number)] = rows },
	}, attempts(
		item("a", 1, "resolved", textAttempt()), item("a", 2, "unresolved", other()), item("a", 3, "", other()),
		item("a", 4, "unresolved", withDemonstration().reply("", "a", call("x", "ls"))),
		item("b", 1, "resolved", textAttempt()),
	))
	require.NoError(t, err)
	want := map[string]int{
		"no verdict resolved or unresolved": 1, "no attempt with the opposite verdict": 1, "no attempt that it can be paired with": 1,
	}
	if diff := cmp.Diff(want, r.Dropped); diff != "" || r.Exported != 2 || r.Rows != 1 || r.FilteredOut != 0 {
		t.Errorf("%+v; left out (-want +got):\n%s", r, diff)
	}
	assert.Equal(t, map[string]int{"1": 1, "2": 0}, rowCounts, "attempts in rows")
}
