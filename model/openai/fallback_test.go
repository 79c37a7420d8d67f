package openai_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/retry"
)

// After a server rejects streaming, requests are not streamed, without a wait.
func TestCannotStream(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   []bool // whether each request asked for a stream
	}{
		"says so":        {400, `{"error":{"message":"Streaming is not supported for this model"}}`, []bool{true, false, false}},
		"knows no usage": {422, `{"detail":"stream_options: extra fields not permitted"}`, []bool{true, false, false}},
		"not made":       {501, `{"error":"stream=true is not implemented"}`, []bool{true, false, false}},
		"another reason": {400, `{"error":{"message":"the upstream refused"}}`, []bool{true, true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked []bool
			m := retry.New(connect(t, openai.Config{Stream: true}, func(w http.ResponseWriter, r *http.Request) {
				var req struct {
					Stream bool `json:"stream"`
				}
				if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
					t.Error(err)
				}
				asked = append(asked, req.Stream)
				if req.Stream {
					respond(test.status, "application/json", test.body)(w, r)
					return
				}
				respond(200, "application/json", plain)(w, r)
			}), retry.Policy{})
			for range 2 {
				reply, err := m.Query(t.Context(), nil)
				if fallsBack := len(test.want) == 3; (err == nil) != fallsBack || reply.Waited != 0 {
					t.Errorf("waited %v, %v", reply.Waited, err)
				}
			}
			if diff := cmp.Diff(test.want, asked); diff != "" {
				t.Errorf("streams (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForeignServers(t *testing.T) {
	tests := map[string]struct {
		status int
		kind   string
		body   string
		hint   string
	}{
		"web page":         {200, "text/html", "<!doctype html>", "ends with /v1"},
		"page as text":     {200, "text/plain", "<html>", "ends with /v1"},
		"another API":      {200, "application/json", `{"status":"ok"}`, "ends with /v1"},
		"no such path":     {404, "text/html", "<html>", "the base URL"},
		"no such model":    {404, "application/json", `{"error":{"message":"The model x does not exist","code":"model_not_found"}}`, "the model's name"},
		"another method":   {405, "text/plain", "", "the base URL"},
		"no key was given": {401, "application/json", `{"error":{"message":"no key"}}`, "check the key"},
	}
	for name, test := range tests {
		for _, stream := range []bool{false, true} {
			_, err := ask(t, openai.Config{Stream: stream}, respond(test.status, test.kind, test.body))
			e, ok := errors.AsType[*model.Error](err)
			if !ok || !strings.Contains(e.Hint, test.hint) || e.MaybeMisconfigured != (test.status == 200) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, stream %t: %+v: %v", name, stream, e, err)
			}
		}
	}
}

func TestLimitsOfHeaders(t *testing.T) {
	for _, status := range []int{200, 429} {
		got, _ := ask(t, openai.Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-RateLimit-Limit-Requests", "1200")
			w.Header().Set("X-RateLimit-Limit-Tokens", "30000")
			respond(status, "application/json", plain)(w, r)
		})
		if want := (model.RateLimits{RequestsPerMinute: 1200, TokensPerMinute: 30000}); got.RateLimits != want {
			t.Errorf("status %d: %+v", status, got.RateLimits)
		}
	}
}

// Some servers report usage in each chunk. It counts even if the stream breaks off.
func TestBrokenStreamUsage(t *testing.T) {
	const part = `data: {"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":100,"completion_tokens":7}}` + "\n\n"
	const silent = `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n"
	hangs := func(w http.ResponseWriter, r *http.Request) {
		respond(200, "text/event-stream", part)(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	counted := model.Usage{Prompt: 100, Completion: 7}
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		want  model.Usage
	}{
		"cut":        {respond(200, "text/event-stream", part), counted},
		"hangs up":   {hangs, counted},
		"garbled":    {respond(200, "text/event-stream", part+"data: {\n\n"), counted},
		"no usage":   {respond(200, "text/event-stream", silent), model.Usage{}},
		"late usage": {respond(200, "text/event-stream", silent+part), counted},
	} {
		price := model.Price{Input: 1, Output: 10}
		reply, err := ask(t, openai.Config{Stream: true, Price: price}, test.serve)
		if err == nil || reply.Usage != test.want || reply.Cost != price.CostOf(test.want) {
			t.Errorf("%s: %+v, cost %v, %v", name, reply.Usage, reply.Cost, err)
		}
	}
}
