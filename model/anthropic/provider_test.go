package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/modeltest"
)

// errorResponse sends an error response, or an error within a stream.
func errorResponse(code int, kind, text string) modeltest.Handler {
	return func(w http.ResponseWriter, r *http.Request, stream bool) {
		if !stream {
			respond(code, "application/json", failure(kind, text))(w, r)
			return
		}
		first, _, _ := strings.Cut(streamed, "event: message_delta")
		respond(200, "text/event-stream", first+"event: error\ndata: "+failure(kind, text)+"\n\n")(w, r)
	}
}

// TestProvider runs the conformance suite.
func TestProvider(t *testing.T) {
	const js, sse = "application/json", "text/event-stream"
	modeltest.Run(t, modeltest.Provider{
		New: func(s modeltest.Settings) (modeltest.Model, error) {
			return anthropic.New(anthropic.Config{
				Name: "m", BaseURL: s.BaseURL, APIKey: s.Key, Stream: s.Stream, Timeout: s.Timeout, HTTPClient: s.Client,
			})
		},
		Plain: plain, Streamed: streamed, FirstEvent: "event: ping\ndata: {\"type\":\"ping\"}\n\n",
		StreamedPieces: func(pieces ...string) string {
			var b strings.Builder
			b.WriteString(`data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":100}}}` + "\n\n")
			b.WriteString(`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n")
			for _, p := range pieces {
				text, _ := json.Marshal(p)
				fmt.Fprintf(&b, `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`+"\n\n", text)
			}
			b.WriteString(`data: {"type":"content_block_stop","index":0}` + "\n\n")
			b.WriteString(`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}` + "\n\n")
			b.WriteString(`data: {"type":"message_stop"}` + "\n\n")
			return b.String()
		},
		Faults: map[string]modeltest.Fault{
			"overloaded":        {Serve: errorResponse(529, "overloaded_error", "x")},
			"rate":              {Serve: errorResponse(429, "rate_limit_error", "x")},
			"API":               {Serve: errorResponse(500, "api_error", "x")},
			"error in good":     {Serve: modeltest.OKHandler(js, failure("api_error", "x"))},
			"no content":        {Serve: modeltest.OKHandler(js, `{"stop_reason":"end_turn"}`)},
			"no stop_reason":    {Serve: modeltest.OKHandler(js, message("", "null"))},
			"bad request":       {Serve: errorResponse(400, "invalid_request_error", "no"), Status: model.BadRequest},
			"wrong key":         {Serve: errorResponse(401, "authentication_error", "no"), Status: model.AuthenticationError},
			"forbidden":         {Serve: errorResponse(403, "permission_error", "no"), Status: model.AuthenticationError},
			"no such model":     {Serve: errorResponse(404, "not_found_error", "model: m"), Status: model.BadRequest},
			"no credit":         {Serve: errorResponse(400, "invalid_request_error", "Your credit balance is too low"), Status: model.AuthenticationError},
			"too long":          {Serve: errorResponse(400, "invalid_request_error", "prompt is too long: 2 tokens > 1 maximum"), Status: model.ContextWindowExceeded},
			"too large":         {Serve: errorResponse(413, "request_too_large", "no"), Status: model.ContextWindowExceeded},
			"end of the window": {Serve: modeltest.OKHandler(js, message("", `"model_context_window_exceeded"`)), Status: model.ContextWindowExceeded},
			"refused":           {Serve: modeltest.OKHandler(js, message("", `"refusal"`)), Status: model.ContentRefused},
		},
		Echoes: map[string]modeltest.Echo{
			"refusal":  {Status: 401, Kind: js, Body: failure("authentication_error", `x","message":"KEY"`+`,"y":"`)},
			"text":     {Status: 500, Kind: "text/plain", Body: `not good: "KEY"`},
			"error":    {Status: 200, Kind: js, Body: `{"error":{"message":"KEY"}}`},
			"answer":   {Status: 200, Kind: js, Body: message(`{"type":"text","text":"KEY"}`, `"end_turn"`)},
			"thought":  {Status: 200, Kind: js, Body: message(`{"type":"thinking","thinking":"KEY","signature":""}`, `"end_turn"`)},
			"event":    {Stream: true, Status: 200, Kind: sse, Body: `data: {"type":"error","error":{"type":"api_error","message":"KEY"}}` + "\n\n"},
			"stream":   {Stream: true, Status: 200, Kind: sse, Body: strings.Replace(streamed, `"text":"héllo"`, `"text":"KEY"`, 1)},
			"bad kind": {Status: 200, Kind: sse, Body: `data: {"type":"KEY"}` + "\n\n"},
		},
	})
}
