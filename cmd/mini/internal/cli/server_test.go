package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

// serverKey is what the server below wants to see; it must never reach a file.
const serverKey = "sk-loopback-0123456789"

// conversation is what the server answers, by the number of replies before.
var conversation = []string{
	"I look around.\n\n```bash\nls; pwd\n```",
	"I write a file.\n\n```bash\necho 'print(1)' > made.py && cat made.py\n```",
	"Done.\n\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo 'a patch'\n```",
}

// newOpenAI is a server with the chat completions of an OpenAI-compatible API,
// plain and streaming, and with Anthropic's for who asks for that.
func newOpenAI(t *testing.T) *httptest.Server {
	s := httptest.NewServer(badDays(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Anthropic-Version") != "" {
			serveAnthropic(w, r)
			return
		}
		if r.Method == http.MethodGet && r.Header.Get("Authorization") == "Bearer "+serverKey {
			write(w, map[string]any{"data": []any{map[string]any{"id": "loopback-1"}}})
			return
		}
		var req struct {
			Stream   bool
			Tools    []any
			Messages []turn
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.Header.Get("Authorization") != "Bearer "+serverKey {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s"}}`, r.Header.Get("Authorization"))
			return
		}
		n := 0
		for _, m := range req.Messages {
			if m.Role == "assistant" {
				n++
			}
		}
		if len(req.Tools) > 0 {
			answerWithCalls(w, req.Messages, n, req.Stream)
			return
		}
		content := conversation[min(n, len(conversation)-1)]
		if req.Stream {
			stream(w, content)
			return
		}
		write(w, map[string]any{
			"model":   "loopback-1",
			"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": content}, "finish_reason": "stop"}},
			"usage":   usage,
		})
	})))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // TLS is tried on it
	t.Cleanup(s.Close)
	return s
}

var usage = map[string]any{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

// stream sends the content in pieces of ten bytes, as server-sent events.
func stream(w http.ResponseWriter, content string) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(v any) {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	}
	choice := func(delta map[string]any, finish any) map[string]any {
		return map[string]any{"model": "loopback-1", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	for len(content) > 0 {
		n := min(10, len(content))
		event(choice(map[string]any{"content": content[:n]}, nil))
		content = content[n:]
	}
	event(choice(map[string]any{}, "stop"))
	event(map[string]any{"choices": []any{}, "usage": usage})
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}
