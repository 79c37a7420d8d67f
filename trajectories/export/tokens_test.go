package export_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// withTokens sets the tokens of the replies, as an agent records them and a reader folds them.
func withTokens(t *testing.T, a *trajectories.Attempt, tokens ...*model.Tokens) *trajectories.Attempt {
	t.Helper()
	recorded := &trajectories.Attempt{Header: a.Header}
	id := 0
	add := func(kind trajectories.Type, data any) {
		id++
		recorded.AddData(trajectories.Record{ID: id, Parent: id - 1, Type: kind}, data)
	}
	for _, e := range a.Entries {
		if e.Cause == trajectories.CauseReply {
			call := *e.Call
			call.Finish = model.FinishStop
			if len(tokens) > 0 {
				call.Tokens, tokens = recorded.RecordTokens(tokens[0]), tokens[1:]
			}
			add(trajectories.TypeCall, call)
		}
		add(trajectories.TypeMessage, e.Message)
	}
	recorded.Outcome = a.Outcome
	return recorded
}

// The rows of tokens: a row for each reply, or for each stretch of replies whose prompts continue the tokens before.
func TestTokenRows(t *testing.T) {
	conversation := newAttempt("m", false).reply("", "one").message(trajectories.CauseObservation, "1").
		reply("", "two").message(trajectories.CauseObservation, "2").reply("", "three").withOutcome("Submitted")
	a := withTokens(
		t, conversation.t,
		&model.Tokens{Prompt: []int32{1, 2}, Completion: []int32{3, 4}, Logprobs: []float64{-1, -2}, Texts: []string{"o", "ne"}},
		&model.Tokens{Prompt: []int32{1, 2, 3, 4, 5}, Completion: []int32{6}, Logprobs: []float64{-3}},
		&model.Tokens{Prompt: []int32{1, 2, 7}, Completion: []int32{8}}, // other tokens of an earlier reply
	)
	a.Header.Session = "s1"
	item := &export.Item{Attempt: a, InstanceID: "a__b-1", Number: 1, Repetition: 2, SHA256: "sum", Verdict: "unresolved"}
	const head = `{"run":null,"instance_id":"a__b-1","attempt":1,"sample":2,"session":"s1","subagent":0,"model":"m",`
	const end = `"format_error":false,"reward":0.0,"verdict":"unresolved","class":"submitted","exit_status":"Submitted",` +
		`"finish_reason":"stop","journal_sha256":"sum"}` + "\n"
	for name, tt := range map[string]struct {
		opts export.Options
		want string
	}{
		"turns": {
			export.Options{},
			head + `"turn":1,"turns":1,"last":false,"prompt_ids":[1,2],"response_ids":[3,4],"mask":[1,1],"logprobs":[-1,-2],` + end +
				head + `"turn":2,"turns":1,"last":false,"prompt_ids":[1,2,3,4,5],"response_ids":[6],"mask":[1],"logprobs":[-3],` + end +
				head + `"turn":3,"turns":1,"last":true,"prompt_ids":[1,2,7],"response_ids":[8],"mask":[1],"logprobs":null,` + end,
		},
		"segments": {
			export.Options{Segments: true},
			head + `"turn":1,"turns":2,"last":false,"prompt_ids":[1,2],"response_ids":[3,4,5,6],"mask":[1,1,0,1],"logprobs":[-1,-2,0,-3],` + end +
				head + `"turn":3,"turns":1,"last":true,"prompt_ids":[1,2,7],"response_ids":[8],"mask":[1],"logprobs":null,` + end,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.opts.Format = export.Tokens
			if diff := cmp.Diff(tt.want, tokenLines(t, tt.opts, item)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	none := *item
	none.Verdict = "infrastructure"
	if lines := tokenLines(t, export.Options{Format: export.Tokens}, &none); strings.Count(lines, `"reward":null,"verdict":"infrastructure"`) != 3 {
		t.Errorf("an accident has a reward:\n%s", lines)
	}
	dir, _ := run(t, export.Options{Format: export.Tokens, Segments: true}, item)
	want := rows(t, filepath.Join(dir, "train.jsonl"))
	for _, row := range want { // parquet.Reader leaves nulls out
		maps.DeleteFunc(row, func(_ string, v any) bool { return v == nil })
	}
	dir, _ = run(t, export.Options{Format: export.Tokens, Segments: true, Parquet: true}, item)
	if diff := cmp.Diff(want, parquetRows(t, filepath.Join(dir, "train.parquet"))); diff != "" || len(want) != 2 {
		t.Errorf("parquet (-JSON lines +parquet):\n%s", diff)
	}
}

// Replies with a format error are marked, left out or masked.
func TestTokensOfFormatErrors(t *testing.T) {
	a := withTokens(
		t, newAttempt("m", false).reply("", "one").message(trajectories.CauseObservation, "1").
			reply("", "bad").message(trajectories.CauseFormatError, "no").reply("", "three").withOutcome("Submitted").t,
		&model.Tokens{Prompt: []int32{1}, Completion: []int32{2}, Logprobs: []float64{-1}},
		&model.Tokens{Prompt: []int32{1, 2, 3}, Completion: []int32{4}, Logprobs: []float64{-2}},
		&model.Tokens{Prompt: []int32{1, 2, 3, 4, 5}, Completion: []int32{6}, Logprobs: []float64{-3}},
	)
	for _, tt := range []struct {
		opts    export.Options
		want    string // turn, response, mask, log probabilities and whether it has a format error, of each row
		dropped int
	}{
		{export.Options{}, "1 [2] [1] [-1] false, 2 [4] [1] [-2] true, 3 [6] [1] [-3] false", 0},
		{export.Options{FormatErrors: export.FormatErrorsMask}, "1 [2] [1] [-1] false, 2 [4] [0] [-2] true, 3 [6] [1] [-3] false", 0},
		{export.Options{FormatErrors: export.FormatErrorsDrop}, "1 [2] [1] [-1] false, 3 [6] [1] [-3] false", 1},
		{export.Options{Segments: true}, "1 [2 3 4 5 6] [1 0 1 0 1] [-1 0 -2 0 -3] true", 0},
		{export.Options{Segments: true, FormatErrors: export.FormatErrorsMask}, "1 [2 3 4 5 6] [1 0 0 0 1] [-1 0 -2 0 -3] true", 0},
		{export.Options{Segments: true, FormatErrors: export.FormatErrorsDrop}, "1 [2] [1] [-1] false, 3 [6] [1] [-3] false", 1},
	} {
		tt.opts.Format = export.Tokens
		dir, r := run(t, tt.opts, item("a", 1, "resolved", &builder{a}))
		var got []string
		for _, row := range rows(t, filepath.Join(dir, "train.jsonl")) {
			got = append(got, fmt.Sprint(row["turn"], row["response_ids"], row["mask"], row["logprobs"], row["format_error"]))
		}
		if strings.Join(got, ", ") != tt.want || r.Losses["replies with a format error, which no row has"] != tt.dropped {
			t.Errorf("%+v: got %q, losses %v", tt.opts, got, r.Losses)
		}
	}
}

// Attempts without rows are dropped, each with the reason.
func TestAttemptsWithoutTokens(t *testing.T) {
	tokens := &model.Tokens{Prompt: []int32{1}, Completion: []int32{2}}
	rejected := newAttempt("m", false).reply("", "bad").message(trajectories.CauseFormatError, "no").withOutcome("Interrupted")
	_, r := run(t, export.Options{Format: export.Tokens, FormatErrors: export.FormatErrorsDrop},
		item("a", 1, "", newAttempt("m", false).withOutcome("PullFailed")),
		item("b", 1, "", newAttempt("m", false).reply("", "one").withOutcome("Submitted")),
		item("c", 1, "", &builder{withTokens(t, rejected.t, tokens)}),
		item("d", 1, "", &builder{withTokens(t, newAttempt("m", false).reply("", "one").withOutcome("Submitted").t, tokens)}),
	)
	want := map[string]int{
		"no reply": 1, "no token ids: run with --tokens, and a server that returns them": 1, "no reply without a format error": 1,
	}
	if diff := cmp.Diff(want, r.Dropped); diff != "" || r.Rows != 1 {
		t.Errorf("%d rows; dropped (-want +got):\n%s", r.Rows, diff)
	}
}

// tokenLines returns the lines of the exported file.
func tokenLines(t *testing.T, o export.Options, item *export.Item) string {
	t.Helper()
	dir, _ := run(t, o, item)
	data, err := os.ReadFile(filepath.Join(dir, "train.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
