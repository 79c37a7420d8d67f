package anthropic_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
)

// failure is an error object of the API.
func failure(kind, text string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + text + `"},"request_id":"req_1"}`
}

func TestFailures(t *testing.T) {
	const sse, js, html = "text/event-stream", "application/json", "text/html"
	first, _, _ := strings.Cut(streamed, "event: message_delta")
	start, _, _ := strings.Cut(streamed, "event: content_block_start")
	event := func(kind, text string) string { return first + "event: error\ndata: " + failure(kind, text) + "\n\n" }
	tests := map[string]struct {
		stream     bool
		status     int
		kind, body string
		want       model.Status
		retryable  bool
		text       string
	}{
		"wrong key":           {false, 401, js, failure("authentication_error", "invalid x-api-key"), model.AuthenticationError, false, "401 Unauthorized: invalid x-api-key"},
		"forbidden":           {true, 403, js, failure("permission_error", "no access"), model.AuthenticationError, false, "no access"},
		"no credit":           {false, 400, js, failure("invalid_request_error", "Your credit balance is too low to access the Anthropic API"), model.AuthenticationError, false, "credit balance"},
		"spending limit":      {false, 400, js, failure("invalid_request_error", "You have reached your specified API usage limits."), model.AuthenticationError, false, "usage limits"},
		"no such model":       {false, 404, js, failure("not_found_error", "model: claude-x"), model.BadRequest, false, "model: claude-x"},
		"bad request":         {true, 400, js, failure("invalid_request_error", "messages: roles must alternate"), model.BadRequest, false, "alternate"},
		"too long":            {false, 400, js, failure("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"), model.ContextWindowExceeded, false, "208310"},
		"too long an answer":  {true, 400, js, failure("invalid_request_error", "input length and `max_tokens` exceed context limit"), model.ContextWindowExceeded, false, "exceed"},
		"too many bytes":      {false, 413, js, failure("request_too_large", "Request exceeds the maximum size"), model.ContextWindowExceeded, false, "413"},
		"filter":              {false, 400, js, failure("invalid_request_error", "Output blocked by content filtering policy"), model.ContentRefused, false, "400"},
		"rate":                {true, 429, js, failure("rate_limit_error", "slow down"), model.RateLimited, true, "429 Too Many Requests: slow down"},
		"server":              {false, 500, js, failure("api_error", "Internal server error"), model.ProviderError, true, "500"},
		"bad gateway":         {true, 502, html, "<html><body>nginx secret page</body></html>", model.ProviderError, true, "502 Bad Gateway"},
		"timeout there":       {false, 504, js, failure("timeout_error", "timed out"), model.ProviderError, true, "504"},
		"overloaded":          {true, 529, js, failure("overloaded_error", "Overloaded"), model.ProviderError, true, "529: Overloaded"},
		"nothing said":        {false, 500, js, "", model.ProviderError, true, "500 Internal Server Error"},
		"200, error":          {false, 200, js, failure("rate_limit_error", "slow down"), model.RateLimited, true, "429 Too Many Requests: slow down"},
		"200, in a stream":    {true, 200, js, failure("invalid_request_error", "prompt is too long"), model.ContextWindowExceeded, false, "too long"},
		"200, error of proxy": {false, 200, js, `{"error":"boom"}`, model.ProviderError, true, "boom"},
		"200, other API":      {false, 200, js, `{"choices":[]}`, model.ProviderError, true, "no content"},
		"200, content null":   {false, 200, js, `{"content":null}`, model.ProviderError, true, "no content"},
		"200, content text":   {false, 200, js, `{"content":"a"}`, model.ProviderError, true, "no content"},
		"200, content of 1":   {false, 200, js, `{"content":[1],"stop_reason":"end_turn"}`, model.ProviderError, true, "has no type"},
		"200, a list":         {false, 200, js, `[]`, model.ProviderError, true, "no content"},
		"200, HTML":           {false, 200, html, "<html>", model.ProviderError, true, ""},
		"200, stream of HTML": {true, 200, html, "<html>", model.ProviderError, true, ""},
		"200, nothing":        {false, 200, js, "", model.ProviderError, true, "read answer: EOF"},
		"200, half":           {false, 200, js, plain[:200], model.ProviderError, true, "EOF"},
		"no stop_reason":      {false, 200, js, message(`{"type":"text","text":"a"}`, "null"), model.ProviderError, true, "no stop_reason"},
		"refused":             {false, 200, js, strings.Replace(message("", `"refusal"`), `"usage"`, `"stop_details":{"type":"refusal","category":"cyber","explanation":"not that"},"usage"`, 1), model.ContentRefused, false, "cyber: not that"},
		"refused, no why":     {false, 200, js, message("", `"refusal"`), model.ContentRefused, false, "no reason given"},
		"refused in a stream": {true, 200, sse, strings.Replace(streamed, `"stop_reason":"tool_use"`, `"stop_reason":"refusal"`, 1), model.ContentRefused, false, "withheld"},
		"end of the window":   {true, 200, sse, strings.Replace(streamed, `"stop_reason":"tool_use"`, `"stop_reason":"model_context_window_exceeded"`, 1), model.ContextWindowExceeded, false, "window"},
		"stream of nothing":   {true, 200, sse, "", model.ProviderError, true, "no message_stop"},
		"stream of pings":     {true, 200, sse, "event: ping\ndata: {\"type\":\"ping\"}\n\n", model.ProviderError, true, "no message_stop"},
		"cut stream":          {true, 200, sse, first, model.ProviderError, true, "no message_stop"},
		"cut at the start":    {true, 200, sse, start, model.ProviderError, true, "no message_stop"},
		"cut at the end":      {true, 200, sse, strings.TrimSuffix(streamed, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), model.ProviderError, true, "no message_stop"},
		"cut in an event":     {true, 200, sse, first + `data: {"type":"mess`, model.ProviderError, true, "read event"},
		"no message_delta":    {true, 200, sse, first + "data: {\"type\":\"message_stop\"}\n\n", model.ProviderError, true, "no stop_reason"},
		"no message_start":    {true, 200, sse, strings.TrimPrefix(streamed, start), model.ProviderError, true, "starts with"},
		"of another API":      {true, 200, sse, "data: {\"choices\":[]}\n\n", model.ProviderError, true, "starts with"},
		"event of no JSON":    {true, 200, sse, first + "data: hello\n\n", model.ProviderError, true, "read event"},
		"event of wrong kind": {true, 200, sse, first + "data: {\"type\":5}\n\n", model.ProviderError, true, "no message_stop"},
		"no such block":       {true, 200, sse, start + "data: {\"type\":\"content_block_stop\",\"index\":-1}\n\n", model.ProviderError, true, "assemble stream"},
		"a part of no block":  {true, 200, sse, start + "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n", model.ProviderError, true, "assemble stream"},
		"overloaded, event":   {true, 200, sse, event("overloaded_error", "Overloaded"), model.ProviderError, true, "529: Overloaded"},
		"rate, event":         {true, 200, sse, event("rate_limit_error", "slow down"), model.RateLimited, true, "slow down"},
		"wrong key, event":    {true, 200, sse, event("authentication_error", "no"), model.AuthenticationError, false, "401"},
		"error, no name":      {true, 200, sse, withoutNames(event("overloaded_error", "Overloaded")), model.ProviderError, true, "529: Overloaded"},
		"error of proxy":      {true, 200, sse, first + "data: {\"error\":{\"message\":\"busy\",\"code\":429}}\n\n", model.RateLimited, true, "busy"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			_, err := ask(t, anthropic.Config{Stream: test.stream}, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				respond(test.status, test.kind, test.body)(w, r)
			})
			e, ok := errors.AsType[*model.Error](err)
			if !ok {
				t.Fatalf("error %v, want a *model.Error", err)
			}
			if e.Status != test.want || e.Retryable != test.retryable || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s, retryable %v: %v", e.Status, e.Retryable, err)
			}
			if test.status >= 400 && e.HTTPStatus != test.status {
				t.Errorf("code %d, want %d", e.HTTPStatus, test.status)
			}
			if test.status == 404 && e.Hint == "" {
				t.Error("no hint")
			}
			if strings.Contains(err.Error(), "nginx") {
				t.Errorf("HTML in %v", err)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests", n)
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
