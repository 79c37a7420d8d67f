package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// serveAnthropic has the same conversation in Anthropic's API, plain and
// streaming.
func serveAnthropic(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Api-Key") != serverKey {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key: %s"}}`, r.Header.Get("X-Api-Key"))
		return
	}
	if strings.HasSuffix(r.URL.Path, "/models") {
		write(w, map[string]any{"data": []any{map[string]any{"id": "claude"}}})
		return
	}
	var req struct {
		Stream   bool
		System   []struct{ Text string }
		Messages []struct{ Role string }
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.System) != 1 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	content := conversation[min(len(req.Messages)/2, len(conversation)-1)]
	message := map[string]any{
		"type": "message", "role": "assistant", "model": "claude-1", "content": []any{map[string]any{"type": "text", "text": content}},
		"stop_reason": "end_turn", "usage": map[string]any{"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 20},
	}
	if !req.Stream {
		write(w, message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind string, v map[string]any) {
		v["type"] = kind
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
	}
	message["content"], message["stop_reason"] = []any{}, nil
	event("message_start", map[string]any{"message": message})
	event("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	for len(content) > 0 {
		n := min(10, len(content))
		event("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": content[:n]}})
		content = content[n:]
	}
	event("content_block_stop", map[string]any{"index": 0})
	event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": "end_turn"}, "usage": map[string]any{"output_tokens": 20}})
	event("message_stop", map[string]any{})
}
