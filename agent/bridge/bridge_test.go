package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent/bridge"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/ratelimit"
	"github.com/minibench/mini/model/raw"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key     = "sk-provider-key-0123456789"
	replies = `"*": [{content: "` + "one\\n\\n```bash\\nls\\n```" + `", usage: {prompt_tokens: 100, completion_tokens: 20, cached_tokens: 40}}, {content: two, usage: {prompt_tokens: 200, completion_tokens: 10}}]`
)

var price = model.Price{Input: 2, Output: 8, Cached: 0.5}

// fixture is a bridge between an agent's client and a fake provider.
type fixture struct {
	t        *testing.T
	provider *fake.Server
	bridge   *bridge.Bridge
	client   *http.Client

	mu        sync.Mutex
	exchanges []bridge.Exchange
	warnings  []string
	sent      []http.Header // of requests to the provider
	begun     int
	refuse    error // returned by Begin
}

// start starts a fixture. Everything is in memory, for synctest.
func start(t *testing.T, c fake.Config, change func(*bridge.Config)) *fixture {
	t.Helper()
	script, err := scripted.Parse("replies.yaml", []byte(replies))
	require.NoError(t, err)
	if c.Script == nil {
		c.Script = script
	}
	c.Price, c.CheckKey = price, func(k string) bool { return k == key }
	f := &fixture{t: t}
	if f.provider, err = fake.New(c); err != nil {
		t.Fatal(err)
	}
	l := fake.NewMemoryListener()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = f.provider.Serve(l) // ends with Close
	}()
	toProvider := &http.Client{Transport: recordHeaders{f, &http.Transport{DialContext: l.DialContext}}}
	m := raw.New(raw.Config{BaseURL: "http://fake/v1", Key: key, Price: price, HTTPClient: toProvider})
	cfg := bridge.Config{
		Model: retry.New(ratelimit.New(ratelimit.Config{}).Wrap(m), retry.Policy{}), ModelName: "real",
		Dialects: []string{"chat", "responses", "messages", "gemini"},
		Begin: func(bool) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.begun++
			return f.refuse
		},
		Warn: func(text string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.warnings = append(f.warnings, text)
		},
		Record: func(x bridge.Exchange) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.exchanges = append(f.exchanges, x)
			return nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	f.bridge = bridge.New(t.Context(), cfg)
	f.client = &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: 64, // as the helper
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return f.dial(), nil },
	}}
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		f.bridge.Close()
		toProvider.CloseIdleConnections()
		assert.NoError(t, f.provider.Close())
		_ = l.Close()
		<-served
	})
	return f
}

// recordHeaders records the headers of the requests to the provider.
type recordHeaders struct {
	f *fixture
	*http.Transport
}

func (r recordHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	r.f.mu.Lock()
	r.f.sent = append(r.f.sent, req.Header.Clone())
	r.f.mu.Unlock()
	return r.Transport.RoundTrip(req)
}

func (f *fixture) dial() net.Conn {
	conn, ok := f.bridge.Open().(net.Conn)
	if !ok {
		f.t.Fatal("the connection is no net.Conn")
	}
	return conn
}

// dialectRequest is a request of each dialect.
type dialectRequest struct{ name, path, body, header string }

func requests(stream bool) []dialectRequest {
	gemini := "generateContent"
	if stream {
		gemini = "streamGenerateContent?alt=sse"
	}
	return []dialectRequest{
		{"chat", "/v1/chat/completions", fmt.Sprintf(`{"model":"mine","temperature":0.25,"stream":%t,"messages":[{"role":"user","content":"do it"}]}`, stream), "Authorization"},
		{"responses", "/responses", fmt.Sprintf(`{"model":"mine","stream":%t,"input":"do it","tools":[{"type":"web_search"}]}`, stream), "Authorization"},
		{"messages", "/v1/messages?beta=true", fmt.Sprintf(`{"model":"mine","max_tokens":9,"stream":%t,"messages":[{"role":"user","content":"do it"}]}`, stream), "X-Api-Key"},
		{"gemini", "/v1beta/models/mine:" + gemini, `{"contents":[{"role":"user","parts":[{"text":"do it"}]}]}`, "X-Goog-Api-Key"},
	}
}

// post sends a request of the agent, and returns the response with its body.
func (f *fixture) post(ctx context.Context, r dialectRequest, change ...func(http.Header)) (*http.Response, string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bridge"+r.path, strings.NewReader(r.body))
	require.NoError(f.t, err)
	token := f.bridge.Token()
	if r.header == "Authorization" {
		token = "Bearer " + token
	}
	req.Header.Set(r.header, token)
	for _, c := range change {
		c(req.Header)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		f.t.Error(err)
		return &http.Response{}, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil && ctx.Err() == nil {
		f.t.Error(err)
	}
	return resp, string(body)
}

// checkBooks compares the recorded usage and cost with the provider's.
func (f *fixture) checkBooks() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var usage model.Usage
	var cost model.Cost
	for _, x := range f.exchanges {
		usage, cost = usage.Add(x.Reply.Usage), cost+x.Reply.Cost
	}
	books := f.provider.Stats().Charged
	if usage != books.Usage || cost-books.Cost > 1e-12 || books.Cost-cost > 1e-12 {
		f.t.Errorf("recorded %+v, %v; charged %+v, %v", usage, cost, books.Usage, books.Cost)
	}
}

func TestDialects(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for i, r := range requests(stream) {
			t.Run(fmt.Sprintf("%s stream=%t", r.name, stream), func(t *testing.T) {
				f := start(t, fake.Config{Models: []string{"real"}}, nil)
				resp, body := f.post(t.Context(), r)
				if resp.StatusCode != http.StatusOK || !strings.Contains(body, "one") {
					t.Fatalf("status %d, body %s", resp.StatusCode, body)
				}
				if stream != strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
					t.Errorf("content type %s", resp.Header.Get("Content-Type"))
				}
				if r.name == "chat" && strings.Contains(body, `"usage":{`) == stream {
					t.Error("the usage chunk is for mini only")
				}
				x := f.exchanges[0]
				if x.RequestedModel != "mine" || len(x.Messages) != 1 || x.Messages[0].Content != "do it" || !strings.Contains(x.Reply.Message.Content, "one") {
					t.Errorf("exchange %+v", x)
				}
				if r.name == "chat" && string(x.Request.Get("temperature")) != "0.25" {
					t.Error("a field of the agent was changed")
				}
				if r.name == "responses" && (x.Request.Get("tools") != nil || !strings.Contains(fmt.Sprint(x.Edits), "web_search")) {
					t.Errorf("a tool of the provider was passed on: %v", x.Edits)
				}
				f.checkBooks()
				assert.Equal(t, 1, f.provider.Stats().Charged.Replies, "replies")
				_ = i
			})
		}
	}
}

// TestFaults: mini repeats failed requests, and the agent sees only the answer, or an error
// once a part of the answer was sent. Cost and tokens are those of the provider.
func TestFaults(t *testing.T) {
	for _, name := range []string{"rate-limit", "overloaded", "server-error", "bad-gateway", "reset", "cut", "bad-json"} {
		for _, stream := range []bool{false, true} {
			for _, r := range requests(stream) {
				t.Run(fmt.Sprintf("%s %s stream=%t", name, r.name, stream), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := start(t, fake.Config{Plan: &fake.Plan{Rules: []fake.Rule{{Faults: []string{name}, Requests: []int{1}}}}}, nil)
						resp, body := f.post(t.Context(), r)
						broken := stream && (name == "cut" || name == "bad-json")
						switch {
						case resp.StatusCode != http.StatusOK:
							t.Errorf("status %d: %s", resp.StatusCode, body)
						case broken && !strings.Contains(body, `"error"`):
							t.Errorf("a cut stream ends with %.200s", body[max(0, len(body)-200):])
						case !broken && !strings.Contains(body, "one"):
							t.Errorf("body %s", body)
						}
						synctest.Wait() // the provider sees the end of a broken stream
						f.checkBooks()
					})
				})
			}
		}
	}
}

func TestFinalError(t *testing.T) {
	f := start(t, fake.Config{Models: []string{"other"}}, nil)
	for _, r := range requests(true) {
		resp, body := f.post(t.Context(), r)
		if resp.StatusCode != http.StatusNotFound || resp.Header.Get("X-Should-Retry") != "false" || !strings.Contains(body, "real") {
			t.Errorf("%s: status %d, %v, %s", r.name, resp.StatusCode, resp.Header, body)
		}
	}
}

// TestUnusableAnswers: the agent gets an error, not the last broken answer.
func TestUnusableAnswers(t *testing.T) {
	for _, name := range []string{"bad-json", "cut", "bad-gateway", "reset"} {
		for _, r := range requests(false) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, fake.Config{Plan: &fake.Plan{Rules: []fake.Rule{{Faults: []string{name}}}}}, nil)
				resp, body := f.post(t.Context(), r)
				if resp.StatusCode < 500 || !json.Valid([]byte(body)) {
					t.Errorf("%s %s: status %d, %s", name, r.name, resp.StatusCode, body)
				}
				if len(f.exchanges) != 1 || f.exchanges[0].Err == nil {
					t.Errorf("%s %s: exchanges %+v", name, r.name, f.exchanges)
				}
			})
		}
	}
}

func TestToken(t *testing.T) {
	f := start(t, fake.Config{}, nil)
	for _, r := range requests(false) {
		resp, body := f.post(t.Context(), r, func(h http.Header) { h.Set(r.header, "Bearer "+key) })
		if resp.StatusCode != http.StatusUnauthorized || strings.Contains(body, key) {
			t.Errorf("%s: status %d with another key, body %s", r.name, resp.StatusCode, body)
		}
	}
	late := f.dial()
	if _, err := late.Write([]byte("GET / HTTP/1.1\r\n")); err != nil { // returns when the server reads it
		t.Fatal(err)
	}
	f.client.CloseIdleConnections()
	f.bridge.Close()
	if _, err := late.Write([]byte("\r\n")); err == nil {
		t.Error("a connection is open after the attempt")
	}
	w := &recorder{header: http.Header{}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://bridge/v1/chat/completions", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+f.bridge.Token())
	if f.bridge.ServeHTTP(w, req); w.status != http.StatusUnauthorized {
		t.Errorf("status %d after the attempt", w.status)
	}
	assert.Equal(t, 0, f.provider.Stats().Total, "the provider got requests")
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }

func TestOtherEndpoints(t *testing.T) {
	var unknown []string
	f := start(t, fake.Config{}, func(c *bridge.Config) { c.OnUnknown = func(e string) { unknown = append(unknown, e) } })
	for _, tt := range []struct {
		method, path string
		status       int
		text         string
	}{
		{http.MethodGet, "/v1/models", 200, `"real"`},
		{http.MethodGet, "/", 200, ""},
		{http.MethodPost, "/v1/embeddings", 404, "unknown endpoint"},
		{http.MethodPost, "/v1/embeddings", 404, "unknown endpoint"},
		{http.MethodGet, "/v1/../../etc/passwd", 404, "unknown endpoint"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://bridge"+tt.path, strings.NewReader(`{"messages":[]}`))
		require.NoError(t, err)
		req.Header.Set("X-Api-Key", f.bridge.Token())
		resp, err := f.client.Do(req)
		require.NoError(t, err)
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != tt.status || !bytes.Contains(body, []byte(tt.text)) {
			t.Errorf("%s %s: status %d, %s", tt.method, tt.path, resp.StatusCode, body)
		}
	}
	assert.Equal(t, 2, len(unknown), "unknown endpoints %q", unknown)
	assert.Equal(t, 0, len(f.exchanges), "exchanges")
}

// TestRepeat: a client that repeats a request gets the stored answer.
func TestRepeat(t *testing.T) {
	for _, stream := range []bool{false, true} {
		f := start(t, fake.Config{}, nil)
		again := func(h http.Header) { h.Set("X-Stainless-Retry-Count", "1") }
		for _, r := range requests(stream) {
			_, first := f.post(t.Context(), r)
			_, second := f.post(t.Context(), r, again)
			if first == "" || first != second {
				t.Errorf("%s: %q, then %q", r.name, first, second)
			}
		}
		if n := f.provider.Stats().Total; n != 4 || len(f.exchanges) != 4 {
			t.Errorf("%d requests, %d exchanges", n, len(f.exchanges))
		}
	}
}

// TestLimit: a refused request does not reach the provider.
func TestLimit(t *testing.T) {
	f := start(t, fake.Config{}, nil)
	f.refuse = errors.New("LimitsExceeded")
	for _, r := range requests(true) {
		resp, body := f.post(t.Context(), r)
		if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("X-Should-Retry") != "false" || !strings.Contains(body, "attempt limit reached") {
			t.Errorf("%s: status %d, %s", r.name, resp.StatusCode, body)
		}
	}
	if f.provider.Stats().Total != 0 || len(f.exchanges) != 0 {
		t.Error("a refused request was sent")
	}
}

// TestCancel: the agent leaves, and the provider's request is cancelled and recorded.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, fake.Config{Plan: &fake.Plan{Rules: []fake.Rule{{Faults: []string{"stall"}, Wait: time.Hour}}}}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bridge/v1/messages", strings.NewReader(requests(true)[2].body))
		require.NoError(t, err)
		req.Header.Set("X-Api-Key", f.bridge.Token())
		resp, err := f.client.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil || !strings.Contains(string(body), "ping") {
			t.Errorf("%v, body %q; want keepalives while the provider is silent", err, body)
		}
		synctest.Wait()
		if stats := f.provider.Stats(); len(f.exchanges) != 1 || !f.exchanges[0].Cancelled || stats.Requests[0].Outcome == fake.InProgress {
			t.Errorf("exchanges %+v, requests %+v", f.exchanges, stats.Requests)
		}
	})
}

// TestManyCalls sends 1,000 requests at once.
func TestManyCalls(t *testing.T) {
	f := start(t, fake.Config{}, nil)
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			r := requests(i%2 == 0)[i%4]
			if resp, body := f.post(t.Context(), r); resp.StatusCode != http.StatusOK {
				t.Errorf("status %d: %s", resp.StatusCode, body)
			}
		})
	}
	wg.Wait()
	f.checkBooks()
	if len(f.exchanges) != 1000 || f.provider.Stats().Charged.Replies != 1000 {
		t.Errorf("%d exchanges, %d replies", len(f.exchanges), f.provider.Stats().Charged.Replies)
	}
}

func TestHostileRequests(t *testing.T) {
	f := start(t, fake.Config{}, nil)
	big := requests(false)[0]
	big.body = `{"model":"` + strings.Repeat("x", 100_000_000) + `"}`
	if resp, body := f.post(t.Context(), big); resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("100 MB: status %d, %s", resp.StatusCode, body)
	}
	for name, body := range map[string]string{
		"no JSON": "{", "a list": "[]", "two objects": "{}{}", "no messages": `{"messages":1}`,
		"remote image": `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/x"}}]}]}`,
		"deep":         strings.Repeat("[", 100_000),
	} {
		r := requests(false)[0]
		r.body = body
		if resp, answer := f.post(t.Context(), r); resp.StatusCode != http.StatusBadRequest || !json.Valid([]byte(answer)) {
			t.Errorf("%s: status %d, %s", name, resp.StatusCode, answer)
		}
	}
	assert.Equal(t, 0, f.provider.Stats().Total, "the provider got requests")
}

// TestGarbage sends what is no HTTP, or no whole request: the connection ends.
func TestGarbage(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "half a body": "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
		"garbage": "\x00\x01\x02\r\n\r\n", "headers without end": "GET / HTTP/1.1\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 200),
		"smuggling": "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nxyz",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, fake.Config{}, nil)
				conn := f.dial()
				go func() { _, _ = conn.Write([]byte(text)) }() // the bridge may close the connection first
				answer, _ := io.ReadAll(conn)
				if len(answer) > 0 && !bytes.HasPrefix(answer, []byte("HTTP/1.1 4")) {
					t.Errorf("answer %.100q", answer)
				}
				_ = conn.Close()
			})
		})
	}
}

// counts are requests that count tokens.
func counts() []dialectRequest {
	return []dialectRequest{
		{"messages", "/v1/messages/count_tokens?beta=true", `{"model":"mine","messages":[{"role":"user","content":"do it"}],"mcp_servers":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, "X-Api-Key"},
		{"gemini", "/v1beta/models/mine:countTokens", `{"contents":[{"role":"user","parts":[{"text":"do it"}]}],"model":"models/mine","tools":[{"urlContext":{}}]}`, "X-Goog-Api-Key"},
	}
}

// TestCounts: a request that counts tokens is checked, limited and recorded as any other.
func TestCounts(t *testing.T) {
	f := start(t, fake.Config{}, nil)
	for i, r := range counts() {
		resp, body := f.post(t.Context(), r)
		if resp.StatusCode != http.StatusOK || !strings.Contains(strings.ToLower(body), "tokens") {
			t.Errorf("%s: status %d, %s", r.name, resp.StatusCode, body)
		}
		x := f.exchanges[i]
		if !x.IsCount || x.Request.Get("tools") != nil || !strings.Contains(fmt.Sprint(x.Edits), "field dropped") || x.Reply.Usage != (model.Usage{}) || string(x.Reply.Raw) != body {
			t.Errorf("%s: exchange %+v", r.name, x)
		}
		remote := r
		remote.body = strings.Replace(r.body, `"user",`, `"user","file":{"fileUri":"https://example.org/x"},`, 1)
		large := r
		large.body = r.body[:1] + strings.Repeat(" ", 64<<20) + r.body[1:]
		twice := r
		twice.body = r.body[:1] + `"Tools":[],` + r.body[1:]
		for want, bad := range map[string]dialectRequest{"an address on the network": remote, "64 MiB": large, "Tools": twice} {
			if resp, body := f.post(t.Context(), bad); resp.StatusCode < 400 || resp.StatusCode >= 500 || !strings.Contains(body, want) {
				t.Errorf("%s: status %d, %s, want %s", r.name, resp.StatusCode, body, want)
			}
		}
	}
	f.refuse = errors.New("LimitsExceeded")
	for _, r := range counts() {
		if resp, body := f.post(t.Context(), r); resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "attempt limit reached") {
			t.Errorf("%s: status %d, %s", r.name, resp.StatusCode, body)
		}
	}
	f.refuse = nil
	status := 0
	for range 1000 {
		resp, _ := f.post(t.Context(), counts()[0])
		status = resp.StatusCode
	}
	if status != http.StatusBadRequest || len(f.exchanges) >= 1000 || f.begun != len(f.exchanges)+2 {
		t.Errorf("status %d, %d exchanges, %d begun", status, len(f.exchanges), f.begun)
	}
}

// TestDropped: fields and headers that the provider does not get, and what is refused, are
// named once.
func TestDropped(t *testing.T) {
	f := start(t, fake.Config{}, nil)
	for _, r := range requests(false) {
		r.body = r.body[:1] + `"plugins":[{"id":"web"}],` + r.body[1:]
		for range 2 {
			if resp, body := f.post(t.Context(), r, func(h http.Header) {
				h.Set("OpenAI-Organization", "org-other")
				h.Set("OpenAI-Project", "proj-other")
				h.Set("Anthropic-Version", "2000-01-01")
				h.Set("Anthropic-Beta", "context-management-2025-06-27, x-1")
				h.Set("X-Other", "1")
			}); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: status %d, %s", r.name, resp.StatusCode, body)
			}
		}
		r.body = strings.Replace(r.body, `"do it"`, `[{"type":"image_url","image_url":"https://example.org/x"}]`, 1)
		f.post(t.Context(), r)
	}
	for _, h := range f.sent {
		for name := range h {
			if slices.Contains([]string{"Openai-Organization", "Openai-Project", "X-Other"}, name) {
				t.Errorf("the header %s was sent", name)
			}
		}
		if v := h.Get("Anthropic-Version"); v != "" && (v != "2023-06-01" || h.Get("Anthropic-Beta") == "") {
			t.Errorf("headers %v", h)
		}
	}
	for _, x := range f.exchanges {
		if x.Request.Get("plugins") != nil || !strings.Contains(fmt.Sprint(x.Edits), "field dropped: plugins") {
			t.Errorf("%s: %s, edits %v", x.Dialect, x.Request.Bytes(), x.Edits)
		}
	}
	// The requests of chat and messages are refused for the same reason.
	for text, want := range map[string]int{"FieldDropped: the field plugins": 4, "RequestRefused: ": 3} {
		n := 0
		for _, w := range f.warnings {
			if strings.HasPrefix(w, text) {
				n++
			}
		}
		if n != want {
			t.Errorf("%d warnings %q, want %d: %q", n, text, want, f.warnings)
		}
	}
}
