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

// shown are the messages of a list, a word each: the first letter of the role,
// the content, and a * where it is learned.
func shown(list any) string {
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

// prompted is an attempt whose prompt has a reply with a call, and its result:
// a demonstration.
func prompted() *script {
	s := newScript("m", true)
	s.t.Entries = nil
	return s.said(trajectories.CausePrompt, "do").
		add(trajectories.CausePrompt, model.Message{Role: model.Assistant, Content: "demo", Calls: []model.Call{call("d", "ls")}}).
		result("d", "shown")
}

// TestLearned: what is learned is what the model wrote, in this attempt, and
// was not refused; and roles take turns all the same.
func TestLearned(t *testing.T) {
	bare := func(tools bool) *script {
		s := newScript("m", tools)
		s.t.Entries = nil
		return s.said(trajectories.CausePrompt, "do")
	}
	branch := bare(false).reply("", "a").said(trajectories.CauseObservation, "1").reply("", "b").said(trajectories.CauseObservation, "2").reply("", "c")
	branch.t.Header.Origin = &trajectories.Origin{Record: branch.t.Entries[3].Record + 1}
	gaveUp := bare(false).reply("", "a").said(trajectories.CauseObservation, "1").reply("", "bad").ends("RepeatedFormatError")
	tool := func(id, text string, c trajectories.Cause) func(*script) *script {
		return func(s *script) *script {
			return s.add(c, model.Message{Role: model.Tool, CallID: id, Content: text})
		}
	}
	for _, tt := range []struct {
		name string
		s    *script
		want string   // the row of Axolotl
		each []string // the rows of prompt-completion
	}{
		{
			"a demonstration", prompted().said(trajectories.CausePrompt, "now").reply("", "a", call("x", "ls")),
			"u:do a:demo t:shown u:now a:a*",
			[]string{"1 u:do a:demo t:shown u:now > a:a"},
		},
		{
			"format errors", bare(false).reply("", "bad").said(trajectories.CauseFormatError, "no").reply("", "a").
				said(trajectories.CauseObservation, "1").reply("", "bad").said(trajectories.CauseFormatError, "no").reply("", "b"),
			"u:do a:a* u:1 a:b*",
			[]string{"2 u:do > a:a", "4 u:do a:a u:1 > a:b"},
		},
		{"given up", gaveUp, "u:do a:a*", []string{"1 u:do > a:a"}},
		{
			"a command that the user refused", bare(false).reply("", "rm").said(trajectories.CauseRejection, "no").reply("", "a"),
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
			"a patch that does not apply", bare(false).reply("", "a").said(trajectories.CauseMalformedPatch, "no patch").reply("", "b"),
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
			if got := shown(rows(t, filepath.Join(dir, "train.jsonl"))[0]["messages"]); got != tt.want {
				t.Errorf("the row\n%s\nwant\n%s", got, tt.want)
			}
			dir, _ = run(t, export.Options{Format: export.PromptCompletion}, item("a", 1, "", tt.s))
			var each []string
			for _, row := range rows(t, filepath.Join(dir, "train.jsonl")) {
				each = append(each, fmt.Sprintf("%v %s > %s", row["step"], shown(row["prompt"]), shown(row["completion"])))
			}
			if diff := cmp.Diff(tt.each, each); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnmasked: a format that cannot say what is not learned refuses what the
// model did not write, and tells of the rest.
func TestUnmasked(t *testing.T) {
	branch := textual()
	branch.t.Header.Origin = &trajectories.Origin{Record: 4}
	for _, format := range []string{export.OpenAI, export.ShareGPT} {
		dir := filepath.Join(t.TempDir(), "out")
		demo := prompted().reply("", "a", call("x", "ls"))
		r, _ := export.Run(t.Context(), export.Config{Options: export.Options{Format: format}, Dir: dir},
			attempts(item("a", 1, "", branch), item("b", 1, "", demo)))
		if r.Exported != 1 || len(r.Dropped) != 1 || r.Losses["replies of the attempt that this one goes on from, which are learned all the same"] != 1 {
			t.Errorf("%s: %d exported, dropped %v, losses %v", format, r.Exported, r.Dropped, r.Losses)
		}
	}
}

// TestPairsAreLearned: neither side of a pair is a reply that is not to be
// learned, and all that follows a prompt begins with one that is.
func TestPairsAreLearned(t *testing.T) {
	branch := textual()
	branch.t.Header.Origin = &trajectories.Origin{Record: 4}
	other := newScript("model-a", false).reply("", "Another way.").ends("Submitted")
	dir := filepath.Join(t.TempDir(), "out")
	r, err := export.Run(t.Context(), export.Config{Options: export.Options{Format: export.DPO}, Dir: dir},
		attempts(item("a", 1, "resolved", branch), item("a", 2, "unresolved", other)))
	if err == nil || r.Dropped["no two attempts that can be paired"] != 2 {
		t.Errorf("a pair with a reply of the attempt before: %v, %+v", err, r)
	}
	dir, _ = run(t, export.Options{Format: export.KTO, Completion: export.Rest}, item("a", 1, "resolved", branch))
	row := rows(t, filepath.Join(dir, "train.jsonl"))[0]
	if rest := shown(row["completion"]); !strings.HasPrefix(rest, "a:```bash\nsed") {
		t.Errorf("the completion begins with %.40q", rest)
	}
}

// TestPairsAreCounted: an attempt counts as exported where it is in a row, and
// those beside it as left out, for their own reasons.
func TestPairsAreCounted(t *testing.T) {
	other := func() *script { return newScript("model-a", false).reply("", "Another way.").ends("Submitted") }
	told := map[string]int{}
	dir := filepath.Join(t.TempDir(), "out")
	r, err := export.Run(t.Context(), export.Config{
		Options: export.Options{Format: export.DPO}, Dir: dir,
		Wrote: func(it *export.Item, _ string, rows int) { told[fmt.Sprint(it.Attempt)] = rows },
	}, attempts(
		item("a", 1, "resolved", textual()), item("a", 2, "unresolved", other()), item("a", 3, "", other()),
		item("a", 4, "unresolved", prompted().reply("", "a", call("x", "ls"))), item("b", 1, "resolved", textual()),
	))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"no verdict that says whether it is resolved": 1, "no attempt with the other verdict to pair it with": 1, "no two attempts that can be paired": 1,
	}
	if diff := cmp.Diff(want, r.Dropped); diff != "" || r.Exported != 2 || r.Rows != 1 || r.Sifted != 0 {
		t.Errorf("%+v; left out (-want +got):\n%s", r, diff)
	}
	if diff := cmp.Diff(map[string]int{"1": 1, "2": 0}, told); diff != "" {
		t.Errorf("attempts in rows (-want +got):\n%s", diff)
	}
}

// TestAbout: a row says null where tokens were not counted, how many replies the
// conversation has, and whether mini took the submission at a limit.
func TestAbout(t *testing.T) {
	uncounted, limit := item("a", 1, "", textual()), item("a", 2, "", textual())
	uncounted.Tokens = 0
	uncounted.Outcome.Steps = 30 // with children, failed calls, and others that are in no row
	limit.Outcome.Class, limit.Outcome.Autosubmitted = trajectories.Limit, true
	all := []*export.Item{uncounted, limit}
	for _, format := range []string{export.OpenAI, export.ShareGPT, export.PromptCompletion} {
		dir, _ := run(t, export.Options{Format: format}, all...)
		list := rows(t, filepath.Join(dir, "train.jsonl"))
		first, last := list[0], list[len(list)-1]
		if tokens, ok := first["tokens"]; !ok || tokens != nil || fmt.Sprint(first["steps"]) != fmt.Sprint(uncounted.Steps()) || first["autosubmitted"] != false {
			t.Errorf("%s: tokens %v, steps %v, autosubmitted %v", format, first["tokens"], first["steps"], first["autosubmitted"])
		}
		if last["tokens"] == nil || last["autosubmitted"] != true {
			t.Errorf("%s: tokens %v, autosubmitted %v", format, last["tokens"], last["autosubmitted"])
		}
	}
	if n := uncounted.Steps(); n != 4 {
		t.Errorf("%d steps", n)
	}
}
