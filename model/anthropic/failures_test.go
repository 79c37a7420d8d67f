package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/modeltest"
)

// failure is an error object of the API.
func failure(kind, text string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + text + `"},"request_id":"req_1"}`
}

// A stream that breaks off, or has an error in it, is a failure. Other failures are in
// model/modeltest/testdata/providers.
func TestStreamFailures(t *testing.T) {
	first, _, _ := strings.Cut(streamed, "event: message_delta")
	start, _, _ := strings.Cut(streamed, "event: content_block_start")
	event := func(kind, text string) string { return first + "event: error\ndata: " + failure(kind, text) + "\n\n" }
	tests := map[string]struct {
		events    string
		want      model.Status
		retryable bool
		text      string
	}{
		"refused in a stream": {strings.Replace(streamed, `"stop_reason":"tool_use"`, `"stop_reason":"refusal"`, 1), model.ContentRefused, false, "withheld"},
		"end of the window":   {strings.Replace(streamed, `"stop_reason":"tool_use"`, `"stop_reason":"model_context_window_exceeded"`, 1), model.ContextWindowExceeded, false, "window"},
		"stream of pings":     {"event: ping\ndata: {\"type\":\"ping\"}\n\n", model.ProviderError, true, "no message_stop"},
		"cut stream":          {first, model.ProviderError, true, "no message_stop"},
		"cut at the start":    {start, model.ProviderError, true, "no message_stop"},
		"cut at the end":      {strings.TrimSuffix(streamed, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), model.ProviderError, true, "no message_stop"},
		"cut in an event":     {first + `data: {"type":"mess`, model.ProviderError, true, "read event"},
		"no message_delta":    {first + "data: {\"type\":\"message_stop\"}\n\n", model.ProviderError, true, "no stop_reason"},
		"no message_start":    {strings.TrimPrefix(streamed, start), model.ProviderError, true, "starts with"},
		"of another API":      {"data: {\"choices\":[]}\n\n", model.ProviderError, true, "starts with"},
		"event of no JSON":    {first + "data: hello\n\n", model.ProviderError, true, "read event"},
		"event of wrong kind": {first + "data: {\"type\":5}\n\n", model.ProviderError, true, "no message_stop"},
		"no such block":       {start + "data: {\"type\":\"content_block_stop\",\"index\":-1}\n\n", model.ProviderError, true, "assemble stream"},
		"a part of no block":  {start + "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n", model.ProviderError, true, "assemble stream"},
		"overloaded, event":   {event("overloaded_error", "Overloaded"), model.ProviderError, true, "529: Overloaded"},
		"rate, event":         {event("rate_limit_error", "slow down"), model.RateLimited, true, "slow down"},
		"wrong key, event":    {event("authentication_error", "no"), model.AuthenticationError, false, "401"},
		"error, no name":      {withoutNames(event("overloaded_error", "Overloaded")), model.ProviderError, true, "529: Overloaded"},
		"error of proxy":      {first + "data: {\"error\":{\"message\":\"busy\",\"code\":429}}\n\n", model.RateLimited, true, "busy"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, anthropic.Config{Stream: true}, respond(200, "text/event-stream", test.events))
			e, ok := errors.AsType[*model.Error](err)
			if !ok || e.Status != test.want || e.Retryable != test.retryable || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%+v: %v; want %s, retryable %t, with %q", e, err, test.want, test.retryable, test.text)
			}
		})
	}
}

// The usage at the start of a stream counts even if the stream breaks off, unless
// the provider reports an error.
func TestBrokenStreamUsage(t *testing.T) {
	first, _, _ := strings.Cut(streamed, "event: message_delta")
	started, none := model.Usage{Prompt: 100, Completion: 1, CacheRead: 60, CacheWrite: 30, CacheWriteHour: 20}, model.Usage{}
	price := model.Price{Input: 1, Output: 10, Cached: 0.1, CacheWrite: 1.25}
	for name, test := range map[string]struct {
		body string
		want model.Usage
	}{
		"cut":         {first, started},
		"garbled":     {first + "data: {\n\n", started},
		"error event": {first + "event: error\ndata: " + failure("overloaded_error", "x") + "\n\n", none},
		"no start":    {"data: {\"type\":\"ping\"}\n\n", none},
	} {
		for _, p := range []model.Price{price, {}} {
			reply, err := ask(t, anthropic.Config{Stream: true, Price: p}, respond(200, "text/event-stream", test.body))
			want, cost := test.want, p.CostOf(test.want)
			if want != none && !p.IsKnown() {
				want.Unpriced = 1
			}
			if err == nil || reply.Usage != want || reply.Cost != cost {
				t.Errorf("%s: %+v, cost %v, %v", name, reply.Usage, reply.Cost, err)
			}
		}
	}
}

func TestNewErrors(t *testing.T) {
	kwargs := func(name string, value any) anthropic.Config {
		return anthropic.Config{Name: "m", Kwargs: map[string]any{name: value}}
	}
	tests := map[string]struct {
		config anthropic.Config
		want   string
	}{
		"no name":           {anthropic.Config{}, "model name is missing"},
		"no scheme":         {anthropic.Config{Name: "m", BaseURL: "localhost:8000"}, "want http:// or https://"},
		"no host":           {anthropic.Config{Name: "m", BaseURL: "http:///v1"}, "and a host"},
		"password":          {anthropic.Config{Name: "m", BaseURL: "http://u:0123@h"}, "want no user"},
		"query":             {anthropic.Config{Name: "m", BaseURL: "http://h/v1?key=0123"}, "set keys in the environment"},
		"not a URL":         {anthropic.Config{Name: "m", BaseURL: "http://0123 456789\x7f"}, "cannot be parsed"},
		"whole address":     {anthropic.Config{Name: "m", BaseURL: "http://h/v1/messages/"}, "remove /messages from its end"},
		"broken key":        {anthropic.Config{Name: "m", APIKey: "sk-0123\n456789"}, "control character"},
		"header name":       {anthropic.Config{Name: "m", Headers: map[string]string{"a b": "c"}}, `header "a b"`},
		"header value":      {anthropic.Config{Name: "m", Headers: map[string]string{"a": "0123\n"}}, `header "a"`},
		"key as header":     {anthropic.Config{Name: "m", Headers: map[string]string{"X-API-Key": "0123"}}, "set keys in the environment"},
		"token as header":   {anthropic.Config{Name: "m", Headers: map[string]string{"authorization": "Bearer 0123"}}, "set keys in the environment"},
		"model in kwargs":   {kwargs("model", "x"), `"model" is set by mini`},
		"system in kwargs":  {kwargs("system", "x"), `"system" is set by mini`},
		"key in kwargs":     {kwargs("api_key", "0123"), "set keys in the environment"},
		"tools in kwargs":   {anthropic.Config{Name: "m", Tools: bash, Kwargs: map[string]any{"tools": []any{}}}, `"tools" is set by mini`},
		"kwargs of no JSON": {kwargs("f", func() {}), "model kwargs: f: "},
		"betas":             {kwargs("betas", "one"), "want a list of names"},
		"beta of two lines": {kwargs("betas", []string{"a\r\nx: y"}), "is not a name"},
		"max_tokens":        {kwargs("max_tokens", "many"), "is not a number of tokens"},
		"no room to answer": {anthropic.Config{Name: "m", MaxTokens: 1000, Kwargs: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 1000}}}, "uses up the max_tokens of 1000"},
		"tool of no schema": {anthropic.Config{Name: "m", Tools: []model.ToolDefinition{{Name: "bash"}}}, "JSON Schema"},
		"cache":             {anthropic.Config{Name: "m", Cache: "2h"}, `cache "2h"`},
		"negative timeout":  {anthropic.Config{Name: "m", Timeout: -1}, "cannot be negative"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := anthropic.New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) || modeltest.ContainsKey(err.Error()) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestConfigNeverPrintsKey(t *testing.T) {
	c := anthropic.Config{Name: "m", APIKey: secret, BaseURL: "https://example.org", Headers: map[string]string{"X-Team": "456789"}}
	m, err := anthropic.New(c)
	require.NoError(t, err)
	modeltest.CheckKeyNeverPrinted(t, c, m)
	assert.Contains(t, c.String(), "X-Team", "%v does not say that there is a header", c)
}

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
