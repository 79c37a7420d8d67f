package cli_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// leak is how a problem statement asks the server to give the key away.
var leak = regexp.MustCompile(`leak-[a-z0-9]+`)

// leaky serves both APIs, plain and streamed, and says the key of each request
// again, in as many ways as there are.
func leaky() http.Handler {
	var busy sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		key := cmp.Or(r.Header.Get("X-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		l := leaking{w, key, r.Header.Get("Anthropic-Version") != "", strings.Contains(string(body), `"stream":true`)}
		refuse := func(status int, kind, text string) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, text, key)
		}
		const object, page = `{"type":"error","error":{"type":"x","message":"Bearer %[1]s is not a key, %[1]s"}}`, `<html><title>%s</title>`
		switch how := leak.FindString(string(body)); how {
		case "leak-401":
			refuse(401, "application/json", object)
		case "leak-500":
			refuse(500, "text/plain", "panic: header %s")
		case "leak-502":
			refuse(502, "text/html", page)
		case "leak-page":
			refuse(200, "text/html", page)
		case "leak-error":
			refuse(200, "application/json", object)
		case "leak-json":
			refuse(200, "application/json", `{"choices":[{"%s`)
		case "leak-event":
			refuse(200, "text/event-stream", "event: error\ndata: "+object+"\n\n")
		case "leak-stream":
			refuse(400, "application/json", `{"error":{"message":"stream is refused to %s"}}`)
		case "leak-here":
			if !strings.HasSuffix(r.URL.Path, key) {
				http.Redirect(w, r, "/leaky/"+key, http.StatusTemporaryRedirect)
				return
			}
			refuse(404, "application/json", object)
		case "leak-away":
			http.Redirect(w, r, "http://127.0.0.1:1/"+key+"?key="+key, http.StatusTemporaryRedirect)
		case "leak-location":
			w.Header().Set("Location", "http://["+key)
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "leak-busy":
			if _, again := busy.LoadOrStore(fmt.Sprint(l.anthropic, l.stream), true); !again {
				w.Header().Set("Retry-After-Ms", "10")
				refuse(429, "application/json", object)
				return
			}
			l.answer()
		default:
			l.answer()
		}
	})
}

// leaking is one answer with the key in it.
type leaking struct {
	w                 http.ResponseWriter
	key               string
	anthropic, stream bool
}

// answer hands the key in as the patch, after a look at the environment. In a
// stream no part has all of it.
func (l leaking) answer() {
	text := "You are " + l.key + "\n\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo " + l.key + "; env\n```"
	l.w.Header().Set("Content-Type", "application/json")
	if !l.stream {
		l.say("", l.message(text))
		return
	}
	l.w.Header().Set("Content-Type", "text/event-stream")
	if l.anthropic {
		l.say("message_start", map[string]any{"message": map[string]any{
			"type": "message", "role": "assistant", "model": l.key, "content": []any{}, "usage": map[string]any{"input_tokens": 1},
		}})
		l.say("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	}
	for len(text) > 0 {
		n := min(7, len(text))
		part := text[:n]
		if text = text[n:]; l.anthropic {
			l.say("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": part}})
			continue
		}
		l.say("chunk", map[string]any{"model": l.key, "choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": part}}}})
	}
	if l.anthropic {
		l.say("content_block_stop", map[string]any{"index": 0})
		l.say("message_delta", map[string]any{"delta": map[string]any{"stop_reason": "end_turn"}, "usage": map[string]any{"output_tokens": 1}})
		l.say("message_stop", map[string]any{})
		return
	}
	l.say("chunk", map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "stop"}}})
	_, _ = io.WriteString(l.w, "data: [DONE]\n\n")
}

func (l leaking) message(text string) map[string]any {
	if l.anthropic {
		return map[string]any{
			"type": "message", "role": "assistant", "model": l.key, "content": []any{map[string]any{"type": "text", "text": text}},
			"stop_reason": "end_turn", "usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
		}
	}
	return map[string]any{
		"model": l.key, "headers": []string{"Bearer " + l.key},
		"choices": []any{map[string]any{"message": map[string]any{"content": text, "reasoning": l.key}, "finish_reason": "stop"}},
	}
}

// say writes an object, as an event where it has a kind.
func (l leaking) say(kind string, v map[string]any) {
	before, after := "", ""
	if kind != "" {
		before, after = "event: "+kind+"\ndata: ", "\n\n"
		v["type"] = kind
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(l.w, before+string(data)+after)
}
