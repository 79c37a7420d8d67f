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

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/modeltest"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/retry"
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
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
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
			require.NoError(t, err)
			assert.NoDiff(t, cmp.Diff(want, got, cmpopts.IgnoreFields(model.Reply{}, "Raw")))
			var raw any
			if err := json.Unmarshal(got.Raw, &raw); err != nil {
				t.Fatalf("raw response: %v", err)
			}
			raws = append(raws, raw)
			assert.Equal(t, raws[0], raw, "raw responses differ: ")
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
			require.NoError(t, err)
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
				assert.NoError(t, json.NewDecoder(r.Body).Decode(&got))
				if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+secret {
					t.Errorf("%s with %q", r.URL.Path, r.Header.Get("Authorization"))
				}
				respond(200, "application/json", plain)(w, r)
			})
			require.NoError(t, err)
			assert.Equal(t, test.want, got, "the result")
		})
	}
}

// A stream that breaks off, or has an error in it, is a failure. Other failures are in
// model/modeltest/testdata/providers.
func TestStreamFailures(t *testing.T) {
	first, _, _ := strings.Cut(streamed, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}")
	tests := map[string]struct {
		events    string
		want      model.Status
		retryable bool
		text      string
	}{
		"200, only words":    {"event: error\ndata: {\"message\":\"boom\"}\n\n", model.ProviderError, true, "boom"},
		"cut stream":         {first, model.ProviderError, true, "no finish_reason"},
		"cut, with [DONE]":   {first + "data: [DONE]\n\n", model.ProviderError, true, "no finish_reason"},
		"cut in an event":    {first + `data: {"choices":[{"ind`, model.ProviderError, true, "read event"},
		"event of no JSON":   {first + "data: hello\n\n", model.ProviderError, true, "read event"},
		"error event":        {first + "event: error\ndata: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n", model.ProviderError, true, "503 Service Unavailable: overloaded"},
		"error event, text":  {first + ": c\n\ndata: {\"error\":\"boom\"}\n\ndata: [DONE]\n\n", model.ProviderError, true, "boom"},
		"error beside parts": {first + "data: {\"id\":\"x\",\"error\":{\"message\":\"busy\",\"code\":429},\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n", model.RateLimited, true, "busy"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, openai.Config{Stream: true}, respond(200, "text/event-stream", test.events))
			e, ok := errors.AsType[*model.Error](err)
			if !ok || e.Status != test.want || e.Retryable != test.retryable || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%+v: %v; want %s, retryable %t, with %q", e, err, test.want, test.retryable, test.text)
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
				assert.NoError(t, json.NewDecoder(r.Body).Decode(&req))
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
			assert.Equal(t, test.want, asked, "streams")
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

func TestNewErrors(t *testing.T) {
	tests := map[string]struct {
		config openai.Config
		want   string
	}{
		"no name":           {openai.Config{}, "model name is missing"},
		"no scheme":         {openai.Config{Name: "m", BaseURL: "localhost:8000/v1"}, "want http:// or https://"},
		"no host":           {openai.Config{Name: "m", BaseURL: "http:///v1"}, "and a host"},
		"password":          {openai.Config{Name: "m", BaseURL: "http://u:0123@h/v1"}, "want no user"},
		"query":             {openai.Config{Name: "m", BaseURL: "http://h/v1?key=0123"}, "set keys in the environment"},
		"not a URL":         {openai.Config{Name: "m", BaseURL: "http://0123 456789\x7f"}, "cannot be parsed"},
		"whole address":     {openai.Config{Name: "m", BaseURL: "http://h/v1/chat/completions/"}, "remove /chat/completions from its end"},
		"broken key":        {openai.Config{Name: "m", APIKey: "sk-0123\n456789"}, "control character"},
		"model in kwargs":   {openai.Config{Name: "m", Kwargs: map[string]any{"model": "x"}}, `"model" is set by mini`},
		"key in kwargs":     {openai.Config{Name: "m", Kwargs: map[string]any{"api_key": "0123"}}, "set keys in the environment"},
		"kwargs of no JSON": {openai.Config{Name: "m", Kwargs: map[string]any{"f": func() {}}}, "model kwargs: f: "},
		"negative timeout":  {openai.Config{Name: "m", Timeout: -1}, "cannot be negative"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := openai.New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) || modeltest.ContainsKey(err.Error()) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestConfigNeverPrintsKey(t *testing.T) {
	c := openai.Config{Name: "m", APIKey: secret, BaseURL: "https://example.org/v1", Headers: map[string]string{"X-Team": "456789"}}
	m, err := openai.New(c)
	require.NoError(t, err)
	modeltest.CheckKeyNeverPrinted(t, c, m)
}
