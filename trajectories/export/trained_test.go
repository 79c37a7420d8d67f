package export_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

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
			if got := summary(rows(t, filepath.Join(dir, "train.jsonl"))[0]["messages"]); got != tt.want {
				t.Errorf("the row\n%s\nwant\n%s", got, tt.want)
			}
			dir, _ = run(t, export.Options{Format: export.PromptCompletion}, item("a", 1, "", tt.s))
			var each []string
			for _, row := range rows(t, filepath.Join(dir, "train.jsonl")) {
				each = append(each, fmt.Sprintf("%v %s > %s", row["step"], summary(row["prompt"]), summary(row["completion"])))
			}
			if diff := cmp.Diff(tt.each, each); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"no verdict resolved or unresolved": 1, "no attempt with the opposite verdict": 1, "no attempt that it can be paired with": 1,
	}
	if diff := cmp.Diff(want, r.Dropped); diff != "" || r.Exported != 2 || r.Rows != 1 || r.FilteredOut != 0 {
		t.Errorf("%+v; left out (-want +got):\n%s", r, diff)
	}
	if diff := cmp.Diff(map[string]int{"1": 1, "2": 0}, rowCounts); diff != "" {
		t.Errorf("attempts in rows (-want +got):\n%s", diff)
	}
}
