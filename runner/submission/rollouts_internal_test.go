package submission

import (
	"encoding/json"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// The tokens of an attempt have Harbor's form: a stretch before a compaction and one after it.
func TestRollouts(t *testing.T) {
	a := &trajectories.Attempt{}
	id := 0
	add := func(kind trajectories.Type, data any) {
		id++
		a.AddData(trajectories.Record{ID: id, Parent: id - 1, Type: kind}, data)
	}
	reply := func(tokens *model.Tokens) {
		add(trajectories.TypeCall, trajectories.Call{Tokens: a.RecordTokens(tokens)})
		add(trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: model.Assistant}, Cause: trajectories.CauseReply})
	}
	reply(&model.Tokens{Prompt: []int32{1}, Completion: []int32{2}, Logprobs: []float64{-1}})
	reply(&model.Tokens{Prompt: []int32{1, 2, 3}, Completion: []int32{4}, Logprobs: []float64{-2}})
	add(trajectories.TypeCompaction, trajectories.Compaction{})
	reply(&model.Tokens{Prompt: []int32{1, 9}, Completion: []int32{5}, Logprobs: []float64{-3}})
	got, err := json.Marshal(rolloutsOf(a))
	const want = `[{"prompt_token_ids":[[1],[1,2,3]],"completion_token_ids":[[2],[4]],"logprobs":[[-1],[-2]]},` +
		`{"prompt_token_ids":[[1,9]],"completion_token_ids":[[5]],"logprobs":[[-3]]}]`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	reply(&model.Tokens{Prompt: []int32{1, 9, 5}, Completion: []int32{6}})
	if all := rolloutsOf(a); len(all[0].Logprobs) != 2 || all[1].Logprobs != nil {
		t.Errorf("log probabilities of some turns: %v", all)
	}
	reply(nil)
	if all := rolloutsOf(a); all != nil {
		t.Errorf("a turn has no tokens, and there are rollouts: %v", all)
	}
}

// Numbers that are not known are left out of the result of a trial.
func TestAgentResult(t *testing.T) {
	a := &trajectories.Attempt{Entries: []trajectories.Entry{
		{Message: trajectories.Message{Cause: trajectories.CausePrompt}},
		{Message: trajectories.Message{Cause: trajectories.CauseReply}},
		{Message: trajectories.Message{Cause: trajectories.CauseObservation}},
		{Message: trajectories.Message{Cause: trajectories.CauseReply}},
	}}
	for want, r := range map[string]runs.Result{
		`{"metadata":{"n_episodes":2}}`: {},
		`{"metadata":{"n_episodes":2},"n_input_tokens":9,"n_output_tokens":3}`: {
			Usage: model.Usage{Prompt: 9, Completion: 3, Unpriced: 2},
		},
		`{"cost_usd":0,"metadata":{"n_episodes":2},"n_cache_tokens":4,"n_input_tokens":9,"n_output_tokens":3}`: {
			Usage: model.Usage{Prompt: 9, Completion: 3, CacheRead: 4}, Cost: new(model.Cost),
		},
	} {
		if got, err := json.Marshal(agentResult(r, a)); err != nil || string(got) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want)
		}
	}
}

// The message is about the agent or about the tests, as the exception is.
func TestExceptionOf(t *testing.T) {
	tooLong := runs.Result{Class: trajectories.Limit, ExitStatus: "ContextWindowExceeded", Error: "too long"}
	for _, tt := range []struct {
		r             runs.Result
		class         verdicts.Class
		reason        string
		want, message string
	}{
		{runs.Result{Class: trajectories.Submitted, ExitStatus: "Submitted"}, verdicts.Resolved, "", "", ""},
		{runs.Result{Class: trajectories.Limit, ExitStatus: "LimitsExceeded"}, verdicts.Empty, "no patch", "", ""},
		{runs.Result{Class: trajectories.Limit, ExitStatus: "TimeExceeded"}, verdicts.Unresolved, "", "AgentTimeoutError", "TimeExceeded"},
		{tooLong, verdicts.Empty, "no patch", "ContextLengthExceededError", "too long"},
		{runs.Result{Class: trajectories.Environment, ExitStatus: "PullFailed", Error: "no image"}, "", "", "PullFailed", "no image"},
		{runs.Result{Class: trajectories.Submitted, ExitStatus: "Submitted"}, verdicts.TimedOut, "600 s", "VerifierTimeoutError", "600 s"},
		{runs.Result{Class: trajectories.Submitted}, verdicts.Error, "RewardFileEmptyError: x", "RewardFileEmptyError", "RewardFileEmptyError: x"},
	} {
		if got, message := exceptionOf(tt.r, tt.class, tt.reason); got != tt.want || message != tt.message {
			t.Errorf("%s, %s, %q: got %q, %q, want %q, %q", tt.r.ExitStatus, tt.class, tt.reason, got, message, tt.want, tt.message)
		}
	}
}
