package submission

import (
	"encoding/json"
	"testing"

	"github.com/minibench/mini/model"
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
	reply(nil)
	if all := rolloutsOf(a); all != nil {
		t.Errorf("a turn has no tokens, and there are rollouts: %v", all)
	}
}
