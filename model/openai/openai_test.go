package openai_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/modeltest"
	"github.com/minibench/mini/model/openai"
)

const secret = modeltest.Key

var respond = modeltest.StaticHandler

// ask queries a model whose server responds with serve.
func ask(t *testing.T, c openai.Config, serve http.HandlerFunc) (model.Reply, error) {
	t.Helper()
	return connect(t, c, serve).Query(t.Context(), []model.Message{
		{Role: model.System, Content: "be <brief>"},
		{Role: model.User, Content: ""},
		{Role: model.Assistant, Content: "a", Reasoning: "because"},
		{Role: model.User, Content: "b"},
	})
}

func connect(t *testing.T, c openai.Config, serve http.HandlerFunc) *openai.Model {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	c.BaseURL = server.URL + "/v1"
	if c.Name == "" {
		c.Name = "m"
	}
	m, err := openai.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

const plain = `{"id":"c1","object":"chat.completion","created":1,"model":"m-2026","provider":"p","choices":[{"index":0,
 "message":{"role":"assistant","content":"héllo <b>\n` + "```bash\\nls\\n```" + `","reasoning_content":"think hard"},"finish_reason":"stop"}],
 "usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"cost":0.5,
   "prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":8}}}`

// streamed is the answer plain as a stream, with the other events that real servers send.
const streamed = `: KEEPALIVE

event: message
data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-2026","provider":"p","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"think"},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":" hard"}}],"usage":null}

: KEEPALIVE

data: {"choices":[{"index":0,"delta":{"content":"héllo <b>\n"}}]}

data: {"choices":[{"index":0,"delta":{"content":"` + "```bash\\nls\\n```" + `"}}]}

data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"cost":0.5,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":8}}}

data: [DONE]

`

func TestPlainAndStreamedAreEqual(t *testing.T) {
	want := model.Reply{
		Message:      model.Message{Role: model.Assistant, Content: "héllo <b>\n```bash\nls\n```", Reasoning: "think hard"},
		FinishReason: model.FinishStop, Model: "m-2026", Tries: 1, Cost: 0.5,
		Usage: model.Usage{Prompt: 100, Completion: 20, CacheRead: 60, Reasoning: 8},
	}
	var raws []any
	for name, test := range map[string]struct {
		stream     bool
		kind, body string
	}{
		"plain":                        {false, "application/json", plain},
		"stream":                       {true, "text/event-stream; charset=utf-8", streamed},
		"server that does not stream":  {true, "application/json", plain},
		"stream with carriage returns": {true, "text/event-stream", strings.ReplaceAll(streamed, "\n", "\r\n")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, openai.Config{Stream: test.stream}, respond(200, test.kind, test.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(model.Reply{}, "Raw")); diff != "" {
				t.Error(diff)
			}
			var raw any
			if err := json.Unmarshal(got.Raw, &raw); err != nil {
				t.Fatalf("raw response: %v", err)
			}
			raws = append(raws, raw)
			if diff := cmp.Diff(raws[0], raw); diff != "" {
				t.Errorf("raw responses differ: %s", diff)
			}
		})
	}
}

func TestCost(t *testing.T) {
	unbilled := strings.Replace(plain, `"cost":0.5,`, "", 1)
	price := model.Price{Input: 2, Cached: 0.5, Output: 10}
	tests := map[string]struct {
		price    model.Price
		body     string
		want     model.Cost
		unpriced int64
	}{
		"price":            {price, unbilled, (40*2 + 60*0.5 + 20*10) / 1e6, 0},
		"server's cost":    {model.Price{}, plain, 0.5, 0},
		"cost over price":  {price, plain, 0.5, 0},
		"reported free":    {price, strings.Replace(plain, `"cost":0.5,`, `"cost":0,`, 1), 0, 0},
		"unknown price":    {model.Price{}, unbilled, 0, 1},
		"no usage":         {price, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`, 0, 1},
		"free, uncounted":  {model.Price{Free: true}, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`, 0, 0},
		"negative":         {price, strings.Replace(strings.Replace(unbilled, `"prompt_tokens":100`, `"prompt_tokens":-100`, 1), `"cached_tokens":60`, `"cached_tokens":-60`, 1), 20 * 10 / 1e6, 0},
		"negative bill":    {price, strings.Replace(plain, `"cost":0.5,`, `"cost":-0.5,`, 1), (40*2 + 60*0.5 + 20*10) / 1e6, 0},
		"free":             {model.Price{Free: true}, unbilled, 0, 0},
		"deepseek's cache": {model.Price{Input: 1, Cached: 0.1, Output: 1}, strings.Replace(unbilled, `"prompt_tokens_details":{"cached_tokens":60}`, `"prompt_cache_hit_tokens":60`, 1), (40 + 6 + 20) / 1e6, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, openai.Config{Price: test.price}, respond(200, "application/json", test.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Cost, cmpopts.EquateApprox(0, 1e-12)); diff != "" || got.Usage.Unpriced != test.unpriced {
				t.Errorf("%d calls without a price; cost %s", got.Usage.Unpriced, diff)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	messages := []any{
		map[string]any{"role": "system", "content": "be <brief>"},
		map[string]any{"role": "user", "content": "(empty)"},
		map[string]any{"role": "assistant", "content": "a"},
		map[string]any{"role": "user", "content": "b"},
	}
	thinking := append([]any{}, messages...)
	thinking[2] = map[string]any{"role": "assistant", "content": "a", "reasoning_content": "because"}
	tests := map[string]struct {
		config openai.Config
		want   map[string]any
	}{
		"least": {openai.Config{Name: "m"}, map[string]any{"model": "m", "messages": messages, "stream": false}},
		"stream": {openai.Config{Name: "m", Stream: true}, map[string]any{
			"model": "m", "messages": messages, "stream": true, "stream_options": map[string]any{"include_usage": true},
		}},
		"kwargs win, zero is sent": {
			openai.Config{Name: "m", Stream: true, Kwargs: map[string]any{
				"temperature": 0, "top_k": 5, "seed": 7, "max_tokens": 100, "stream_options": map[string]any{"x": 1},
				"provider": map[string]any{"order": []string{"a"}},
			}},
			map[string]any{
				"model": "m", "messages": messages, "stream": true, "temperature": 0.0, "top_k": 5.0, "seed": 7.0, "max_tokens": 100.0,
				"stream_options": map[string]any{"x": 1.0}, "provider": map[string]any{"order": []any{"a"}},
			},
		},
		"names that the client library has rules for": {
			openai.Config{Name: "gpt-5-mini", Kwargs: map[string]any{"max_tokens": 10, "temperature": 0.2}},
			map[string]any{"model": "gpt-5-mini", "messages": messages, "stream": false, "max_tokens": 10.0, "temperature": 0.2},
		},
		"a name of the old endpoint": {openai.Config{Name: "text-davinci-003"}, map[string]any{
			"model": "text-davinci-003", "messages": messages, "stream": false,
		}},
		"reasoning": {openai.Config{Name: "o3", SendReasoning: true}, map[string]any{"model": "o3", "messages": thinking, "stream": false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got map[string]any
			test.config.APIKey = secret + "\n"
			_, err := ask(t, test.config, func(w http.ResponseWriter, r *http.Request) {
				if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
					t.Error(err)
				}
				if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+secret {
					t.Errorf("%s with %q", r.URL.Path, r.Header.Get("Authorization"))
				}
				respond(200, "application/json", plain)(w, r)
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	const sse, js, html = "text/event-stream", "application/json", "text/html"
	first, _, _ := strings.Cut(streamed, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}")
	tests := map[string]struct {
		stream     bool
		status     int
		kind, body string
		want       model.Status
		retryable  bool
		text       string
	}{
		"wrong key":          {false, 401, js, `{"error":{"message":"Incorrect API key provided"}}`, model.AuthenticationError, false, "401 Unauthorized: Incorrect API key"},
		"forbidden":          {true, 403, js, `{"error":{"message":"no access"}}`, model.AuthenticationError, false, "no access"},
		"no credit":          {false, 402, js, `{"error":{"message":"add credits","code":402}}`, model.AuthenticationError, false, "add credits"},
		"no such model":      {false, 404, js, `{"error":"model not found"}`, model.BadRequest, false, "model not found"},
		"bad request":        {true, 400, js, `{"detail":[{"msg":"x"}]}`, model.BadRequest, false, `[{"msg":"x"}]`},
		"too long, code":     {false, 400, js, `{"error":{"message":"x","code":"context_length_exceeded"}}`, model.ContextWindowExceeded, false, "400"},
		"too long, text":     {true, 400, js, `{"object":"error","message":"This model's maximum context length is 4096 tokens"}`, model.ContextWindowExceeded, false, "4096"},
		"filter":             {false, 400, js, `{"error":{"message":"x","code":"content_filter"}}`, model.ContentRefused, false, "400"},
		"flagged":            {false, 403, js, `{"error":{"message":"input was flagged"}}`, model.ContentRefused, false, "flagged"},
		"rate":               {true, 429, js, `{"error":{"message":"slow down"}}`, model.RateLimited, true, "slow down"},
		"quota":              {false, 429, js, `{"error":{"message":"x","code":"insufficient_quota"}}`, model.AuthenticationError, false, "429"},
		"more than a minute": {false, 429, js, `{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 30000, Requested 45000","code":"rate_limit_exceeded"}}`, model.ContextWindowExceeded, false, "45000"},
		"too large":          {true, 413, html, "<html>", model.ContextWindowExceeded, false, "413"},
		"bad gateway":        {false, 502, html, "<html><body>nginx secret page</body></html>", model.ProviderError, true, "502 Bad Gateway"},
		"gateway, stream":    {true, 502, html, "<html>", model.ProviderError, true, "502 Bad Gateway"},
		"overloaded":         {false, 529, "text/plain", "overloaded", model.ProviderError, true, "529: overloaded"},
		"nothing said":       {false, 500, js, "", model.ProviderError, true, "500 Internal Server Error"},
		"200, error":         {false, 200, js, `{"error":{"message":"upstream","code":429}}`, model.RateLimited, true, "429 Too Many Requests: upstream"},
		"200, error text":    {false, 200, js, `{"error":"boom"}`, model.ProviderError, true, "boom"},
		"200, in a stream":   {true, 200, js, `{"error":{"message":"maximum context length"}}`, model.ContextWindowExceeded, false, "maximum"},
		"200, no choices":    {false, 200, js, `{"id":"x","choices":[]}`, model.ProviderError, true, "no choices"},
		"200, flat error":    {false, 200, js, `{"object":"error","message":"This model's maximum context length is 4096 tokens","code":400}`, model.ContextWindowExceeded, false, "4096"},
		"200, only words":    {true, 200, sse, "event: error\ndata: {\"message\":\"boom\"}\n\n", model.ProviderError, true, "boom"},
		"200, HTML":          {false, 200, html, "<html>", model.ProviderError, true, "a web page came instead"},
		"stream, HTML":       {true, 200, html, "<html>", model.ProviderError, true, "a web page came instead"},
		"200, nothing":       {true, 200, sse, "", model.ProviderError, true, "read answer: EOF"},
		"200, half":          {false, 200, js, plain[:200], model.ProviderError, true, "EOF"},
		"no finish_reason":   {false, 200, js, `{"choices":[{"message":{"content":"x"}}]}`, model.ProviderError, true, "no finish_reason"},
		"broken off":         {false, 200, js, `{"choices":[{"message":{"content":"x"},"finish_reason":"error"}]}`, model.ProviderError, true, "aborted the answer"},
		"choice with error":  {false, 200, js, `{"choices":[{"error":{"code":429,"message":"busy"},"finish_reason":"error"}]}`, model.RateLimited, true, "busy"},
		"content, number":    {false, 200, js, `{"choices":[{"message":{"content":7},"finish_reason":"stop"}]}`, model.ProviderError, true, "neither a text nor a list"},
		"call, Gemini":       {false, 200, js, `{"choices":[{"message":{},"finish_reason":"MALFORMED_FUNCTION_CALL"}]}`, model.MalformedCall, false, "MALFORMED"},
		"in a list, Gemini":  {false, 429, js, `[{"error":{"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]`, model.RateLimited, true, "slow down"},
		"behind OpenRouter":  {false, 400, js, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"the prompt is too long for the context window\"}}"}}}`, model.ContextWindowExceeded, false, "too long"},
		"withheld":           {false, 200, js, `{"choices":[{"message":{"content":"x"},"finish_reason":"content_filter"}]}`, model.ContentRefused, false, "filter"},
		"refused":            {false, 200, js, `{"choices":[{"message":{"refusal":"I cannot"},"finish_reason":"stop"}]}`, model.ContentRefused, false, "I cannot"},
		"cut stream":         {true, 200, sse, first, model.ProviderError, true, "no finish_reason"},
		"cut, with [DONE]":   {true, 200, sse, first + "data: [DONE]\n\n", model.ProviderError, true, "no finish_reason"},
		"cut in an event":    {true, 200, sse, first + `data: {"choices":[{"ind`, model.ProviderError, true, "read event"},
		"event of no JSON":   {true, 200, sse, first + "data: hello\n\n", model.ProviderError, true, "read event"},
		"error event":        {true, 200, sse, first + "event: error\ndata: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n", model.ProviderError, true, "503 Service Unavailable: overloaded"},
		"error event, text":  {true, 200, sse, first + ": c\n\ndata: {\"error\":\"boom\"}\n\ndata: [DONE]\n\n", model.ProviderError, true, "boom"},
		"error beside parts": {true, 200, sse, first + "data: {\"id\":\"x\",\"error\":{\"message\":\"busy\",\"code\":429},\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n", model.RateLimited, true, "busy"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, openai.Config{Stream: test.stream}, respond(test.status, test.kind, test.body))
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
			if strings.Contains(err.Error(), "nginx") {
				t.Errorf("HTML in %v", err)
			}
		})
	}
}

// A field that is not needed may have any type.
func TestFieldsOfOtherTypes(t *testing.T) {
	const message = `"choices":[{"message":{"content":"look"},"finish_reason":"stop"}]`
	for name, test := range map[string]struct {
		body   string
		prompt int64
	}{
		"counts with a fraction":  {`{` + message + `,"usage":{"prompt_tokens":50.0,"completion_tokens":20.0}}`, 50},
		"counts in strings":       {`{` + message + `,"usage":{"prompt_tokens":"50","completion_tokens":"20"}}`, 50},
		"counts that are objects": {`{` + message + `,"usage":{"prompt_tokens":{},"completion_tokens":[20],"prompt_tokens_details":7,"cost":"?"}}`, 0},
		"no usage but a list":     {`{` + message + `,"usage":[]}`, 0},
		"usage in words":          {`{` + message + `,"usage":"50 tokens"}`, 0},
		"an error that is empty":  {`{"error":{},` + message + `}`, 0},
		"an error that is false":  {`{"error":false,` + message + `}`, 0},
		"a list of texts":         {`{"choices":[{"error":[],"message":{"content":["lo","ok"]},"finish_reason":"stop"}]}`, 0},
		"other fields":            {`{"id":7,"created":"now","model":{"name":"m"},"object":[],` + message + `,"usage":{"prompt_tokens":50}}`, 50},
		"fields of the message": {
			`{"choices":[{"index":"0","message":{"role":1,"content":"look","reasoning":{"a":1},"reasoning_content":["b"],"refusal":false,"tool_calls":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":50}}`, 50,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, openai.Config{}, respond(200, "application/json", test.body))
			if err != nil || got.Message.Content != "look" || got.Usage.Prompt != test.prompt {
				t.Errorf("content %q, %d tokens: %v", got.Message.Content, got.Usage.Prompt, err)
			}
		})
	}
}

// A withheld answer has a cost.
func TestContentFilterUsage(t *testing.T) {
	body := strings.Replace(plain, `"finish_reason":"stop"`, `"finish_reason":"content_filter"`, 1)
	got, err := ask(t, openai.Config{}, respond(200, "application/json", body))
	if err == nil || got.Usage.Prompt != 100 || got.Cost != 0.5 {
		t.Errorf("usage %+v, cost %v, %v", got.Usage, got.Cost, err)
	}
}

func TestLengthIsAReply(t *testing.T) {
	body := strings.Replace(plain, `"finish_reason":"stop"`, `"finish_reason":"length"`, 1)
	got, err := ask(t, openai.Config{}, respond(200, "application/json", body))
	if err != nil || got.FinishReason != model.FinishLength {
		t.Errorf("finish %q, %v", got.FinishReason, err)
	}
}
