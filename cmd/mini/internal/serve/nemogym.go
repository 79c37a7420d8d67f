package serve

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// runRequest is the body of POST /run, in the form of NeMo Gym's agent servers
// (github.com/NVIDIA-NeMo/Gym, responses_api_agents/mini_swe_agent/app.py). Further fields
// are those of the row, which has them in its dataset.
type runRequest struct {
	Params        map[string]any `json:"responses_create_params"`
	Subset        string         `json:"subset"`
	InstanceID    string         `json:"instance_id"`
	PolicyBaseURL string         `json:"policy_base_url"`
	PolicyAPIKey  string         `json:"policy_api_key"`
}

// runSampling are the fields of responses_create_params that are passed to the model, with
// their names in chat completions.
var runSampling = map[string]string{
	"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens", "seed": "seed",
}

// postRun makes one attempt, waits for its verdict, and answers in NeMo Gym's form. The
// attempt ends when the client does. A reward without a verdict is null.
func (s *server) postRun(w http.ResponseWriter, r *http.Request, client string) error {
	var q runRequest
	if err := readBody(w, r, false, &q); err != nil {
		return err
	}
	if q.InstanceID == "" {
		return badRequest("instance_id: want the id of an instance")
	}
	all := request{K: 1, endsWithClient: true, Instance: q.InstanceID, BaseURL: q.PolicyBaseURL, APIKey: q.PolicyAPIKey, Sampling: map[string]any{}}
	for _, name := range s.options.Datasets.Subsets { // NeMo Gym has names of its own for datasets
		if name == q.Subset {
			all.Subset = name
		}
	}
	for field, name := range runSampling {
		if value, ok := q.Params[field]; ok && value != nil {
			all.Sampling[name] = value
		}
	}
	if name, ok := q.Params["model"].(string); ok {
		all.Model = name
	}
	rec, _, err := s.accept(r.Context(), client, "", all)
	if err != nil {
		return err
	}
	mayTakeLong(w)
	if running := s.open(rec.ID); running != nil {
		select {
		case <-running.over:
		case <-r.Context().Done():
			running.cancel(errDeleted)
			return errEnds
		}
	}
	if rec, err = s.find(rec.ID); err != nil {
		return err
	}
	items := s.items(rec)
	if rec.State != done || len(items) == 0 {
		return &httpError{http.StatusBadGateway, fmt.Sprintf("the attempt has no result: %s %s", rec.State, rec.Error)}
	}
	writeJSON(w, http.StatusOK, runAnswer(rec, q.Params, items[0]))
	return nil
}

// runAnswer returns the answer of POST /run.
func runAnswer(rec record, params map[string]any, item *export.Item) map[string]any {
	input, output := runMessages(item.Attempt)
	if params == nil {
		params = map[string]any{}
	}
	params["input"] = input
	result := newAttemptResult(item, noTokens)
	return map[string]any{
		"responses_create_params": params, "reward": result.Reward, "instance_id": item.InstanceID,
		"response": map[string]any{
			"id": "resp_" + rec.ID, "created_at": rec.Created.Unix(), "object": "response", "model": item.Header.ModelName, "output": output,
			"parallel_tool_calls": false, "tool_choice": "none", "tools": []any{},
		},
		"metadata": map[string]any{
			"class": result.Class, "exit_status": result.ExitStatus, "error": result.Error, "verdict": result.Verdict, "patch": result.Patch, "rollout": rec.ID, "session": result.Session,
		},
	}
}

// runMessages returns the prompts and the messages after them as items of the Responses
// API. A reply has its tokens if all three lists are known, as NeMo Gym asks.
func runMessages(a *trajectories.Attempt) (input, output []map[string]any) {
	input, output = []map[string]any{}, []map[string]any{}
	for i, e := range a.Entries {
		if e.Role != model.Assistant {
			role := e.Role
			if role == model.Tool {
				role = model.User
			}
			item := map[string]any{
				"type": "message", "role": role, "status": "completed", "content": []any{map[string]any{"type": "input_text", "text": e.Content}},
			}
			if e.Cause == trajectories.CausePrompt && len(output) == 0 {
				input = append(input, item)
			} else {
				output = append(output, item)
			}
			continue
		}
		text := e.Content
		for _, call := range e.ToolCalls {
			arguments, _ := json.Marshal(call) // a struct of texts
			text += "\n" + string(arguments)
		}
		item := map[string]any{
			"type": "message", "role": model.Assistant, "id": fmt.Sprintf("msg_%d", i), "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}},
		}
		if e.Call != nil && e.Call.Tokens != nil && e.Call.Tokens.Logprobs != nil {
			t := e.Call.Tokens
			item["prompt_token_ids"], item["generation_token_ids"], item["generation_log_probs"] = t.Prompt(), t.Completion, t.Logprobs
		}
		output = append(output, item)
	}
	return input, output
}
