package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// turn is a message as the server looks at it.
type turn struct {
	Role      string
	CallID    string                `json:"tool_call_id"`
	ToolCalls []struct{ ID string } `json:"tool_calls"`
}

// callConversation is what the server asks for where it is offered a tool:
// each reply has calls, and each call a name and arguments.
var callConversation = [][][2]string{
	{{"bash", `{"command":"echo first > made.py"}`}, {"bash", `{"command":"echo second >> made.py"}`}},
	{{"python", `{"code":"print(1)"}`}, {"bash", `{"command":`}},
	{{"bash", `{"command":"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat made.py"}`}},
}

// answerWithCalls refuses a history that lacks an answer to a call, as the API
// does, and answers with the n-th reply.
func answerWithCalls(w http.ResponseWriter, history []turn, n int, inParts bool) {
	var open []string
	for _, m := range history {
		if m.Role == "tool" && slices.Contains(open, m.CallID) {
			open = slices.DeleteFunc(open, func(id string) bool { return id == m.CallID })
			continue
		}
		if m.Role == "tool" || len(open) > 0 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"tool_call_ids did not have response messages: %v"}}`, open)
			return
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	var calls []any
	for i, c := range callConversation[min(n, len(callConversation)-1)] {
		calls = append(calls, map[string]any{
			"index": i, "id": fmt.Sprintf("call_%d", i), "type": "function",
			"function": map[string]any{"name": c[0], "arguments": c[1]},
		})
	}
	if inParts {
		streamCalls(w, calls)
		return
	}
	message := map[string]any{"role": "assistant", "content": nil, "tool_calls": calls}
	write(w, map[string]any{
		"model": "loopback-1", "usage": usage,
		"choices": []any{map[string]any{"message": message, "finish_reason": "tool_calls"}},
	})
}

// streamCalls sends one call an event.
func streamCalls(w http.ResponseWriter, calls []any) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(choice map[string]any) {
		data, err := json.Marshal(map[string]any{"model": "loopback-1", "choices": []any{choice}, "usage": usage})
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	}
	for _, c := range calls {
		event(map[string]any{"delta": map[string]any{"tool_calls": []any{c}}})
	}
	event(map[string]any{"delta": map[string]any{}, "finish_reason": "tool_calls"})
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}
