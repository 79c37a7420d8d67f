package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/modeltest"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/retry"
)

// thought is an answer with thinking in parts: signed, summarized, encrypted, and
// with unknown fields.
const thought = `[
	{"type":"reasoning.text","text":"First, then <second>.","signature":"sig==","format":"anthropic-claude-v1","index":0},
	{"type":"reasoning.summary","summary":"Both.","id":null,"index":1},
	{"type":"reasoning.encrypted","data":"b64==","id":"rs_1","index":1,"more":{"n":9007199254740993}}]`

const thoughtPlain = `{"choices":[{"message":{"content":"x","reasoning":"First","reasoning_details":` + thought +
	`},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`

// thoughtStream returns thoughtPlain as a stream; some chunks have two parts.
func thoughtStream() string {
	var b strings.Builder
	for _, part := range []string{
		`{"type":"reasoning.text","text":"First, ","signature":null,"format":"anthropic-claude-v1","index":0}`,
		`{"type":"reasoning.text","text":"then <second>.","index":0}`,
		`{"type":"reasoning.text","signature":"sig==","index":0},{"type":"reasoning.summary","summary":"Bo","id":null,"index":1}`,
		`{"type":"reasoning.summary","summary":"th.","index":1}`,
		`{"type":"reasoning.encrypted","data":"b64==","id":"rs_1","index":1,"more":{"n":9007199254740993}}`,
	} {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"reasoning_details\":[%s]}}]}\n\n", part)
	}
	b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	return b.String()
}

// value decodes JSON for comparison. Numbers stay as they are written.
func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestReasoningDetailsAreSentBack(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"plain":    respond(200, "application/json", thoughtPlain),
		"streamed": respond(200, "text/event-stream", thoughtStream()),
	} {
		t.Run(name, func(t *testing.T) {
			var sent struct{ Messages []json.RawMessage }
			requests := 0
			m := connect(t, openai.Config{Stream: name == "streamed", SendReasoning: true}, func(w http.ResponseWriter, r *http.Request) {
				if requests++; requests == 2 {
					assert.NoError(t, json.NewDecoder(r.Body).Decode(&sent))
				}
				serve(w, r)
			})
			history := []model.Message{{Role: model.User, Content: "a"}}
			reply, err := m.Query(t.Context(), history)
			require.NoError(t, err)
			if diff := cmp.Diff(value(t, `{"openai":{"reasoning_details":`+thought+`}}`), value(t, string(reply.Message.ProviderData))); diff != "" {
				t.Fatal(diff)
			}
			foreign := model.Message{Role: model.Assistant, Content: "c", ProviderData: json.RawMessage(`{"anthropic":[{"type":"text","text":"c"}]}`)}
			shown := model.Message{Role: model.Tool, Content: "d", ToolCallID: "1", Images: []model.Image{{MediaType: "image/png", Data: []byte("x")}}}
			reply.Message.Reasoning = ""
			history = append(history, shown, reply.Message, foreign, model.Message{Role: model.User, Content: "e", ProviderData: reply.Message.ProviderData})
			_, err = m.Query(t.Context(), history)
			require.NoError(t, err)
			var got []string
			for _, raw := range sent.Messages {
				got = append(got, string(raw))
			}
			image := `{"role":"user","content":[{"type":"text","text":"The images of the output above:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]}`
			want := `[{"role":"user","content":"a"},{"role":"tool","content":"d","tool_call_id":"1"},` + image + `,
				{"role":"assistant","content":"x","reasoning_content":"","reasoning_details":` + thought + `},
				{"role":"assistant","content":"c","reasoning_content":""},{"role":"user","content":"e"}]`
			assert.NoDiff(t, cmp.Diff(value(t, want), value(t, "["+strings.Join(got, ",")+"]")))
		})
	}
}

// Gemini signs its calls and rejects unsigned ones.
func TestSignedCallsAreSentBack(t *testing.T) {
	const (
		signed   = `{"google":{"thought_signature":"c2lnbmVk+/="}}`
		first    = `"id":"a","type":"function","function":{"name":"bash","arguments":"{}"}`
		second   = `"id":"b","type":"function","function":{"name":"bash","arguments":"{}"}`
		third    = `"id":"c","type":"function","function":{"name":"bash","arguments":"{}"},"extra_content":` + signed
		question = `{"role":"user","content":"x"}`
	)
	answer := `{"role":"assistant","content":"y","extra_content":` + signed + `,"tool_calls":[{` + first + `,"extra_content":` + signed + `},{` + second + `},{` + third + `}]}`
	chunk := func(delta string) string { return `data: {"choices":[{"index":0,"delta":` + delta + `}]}` + "\n\n" }
	for name, serve := range map[string]http.HandlerFunc{
		"plain": respond(200, "application/json", `{"choices":[{"message":`+answer+`,"finish_reason":"tool_calls"}]}`),
		"streamed": respond(200, "text/event-stream", chunk(`{"role":"assistant","content":"y","extra_content":`+signed+`}`)+
			chunk(`{"tool_calls":[{"index":0,`+first+`,"extra_content":`+signed+`},{"index":1,`+second+`}]}`)+
			chunk(`{"tool_calls":[{"index":2,`+third+`}]}`)+
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var sent struct{ Messages json.RawMessage }
			m := connect(t, openai.Config{Stream: name == "streamed"}, func(w http.ResponseWriter, r *http.Request) {
				assert.NoError(t, json.NewDecoder(r.Body).Decode(&sent))
				serve(w, r)
			})
			history := []model.Message{{Role: model.User, Content: "x"}}
			reply, err := m.Query(t.Context(), history)
			require.NoError(t, err)
			_, err = m.Query(t.Context(), append(history, reply.Message))
			require.NoError(t, err)
			assert.NoDiff(t, cmp.Diff(value(t, "["+question+","+answer+"]"), value(t, string(sent.Messages))))
		})
	}
}

// After a server requires earlier thinking, all requests include it, even if empty,
// without a wait.
func TestMissingReasoningIsSent(t *testing.T) {
	for text, wants := range map[string]bool{
		"Missing `reasoning_content` field in the assistant message at message index 1":              true,
		"The `reasoning_content` in the thinking mode must be passed back to the API.":               true,
		"thinking is enabled but reasoning_content is missing in assistant tool call message":        true,
		"Extra inputs are not permitted: reasoning_content":                                          false,
		"The reasoning_content field is not allowed in the input messages: remove it, and try again": false,
	} {
		var sent []string
		m := retry.New(connect(t, openai.Config{}, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = append(sent, string(body))
			if !strings.Contains(string(body), `"reasoning_content":"because"`) || !strings.Contains(string(body), `"reasoning_content":""`) {
				respond(400, "application/json", fmt.Sprintf(`{"error":{"message":%q}}`, text))(w, r)
				return
			}
			respond(200, "application/json", plain)(w, r)
		}), retry.Policy{})
		history := []model.Message{{Role: model.Assistant, Content: "a", Reasoning: "because"}, {Role: model.Assistant, Content: "b"}}
		for range 2 {
			if reply, err := m.Query(t.Context(), history); (err == nil) != wants || reply.Waited != 0 {
				t.Errorf("%s: waited %v, %v", text, reply.Waited, err)
			}
		}
		if want := map[bool]int{true: 3, false: 2}[wants]; len(sent) != want {
			t.Errorf("%s: %d requests, want %d", text, len(sent), want)
		}
	}
}

// Invalid reasoning details are not stored, and invalid stored data is ignored.
func TestNoProviderData(t *testing.T) {
	for _, details := range []string{"null", "[]", `"x"`, "{}", " [ ] "} {
		body := strings.Replace(thoughtPlain, thought, details, 1)
		reply, err := ask(t, openai.Config{}, respond(200, "application/json", body))
		if err != nil || details != " [ ] " && reply.Message.ProviderData != nil {
			t.Errorf("%s: provider data %s, %v", details, reply.Message.ProviderData, err)
		}
	}
	for _, stored := range []string{"[", "[]", "{}", `{"openai":null}`, `{"openai":{}}`, `{"openai":{"reasoning_details":null}}`, `{"openai":7}`} {
		m := connect(t, openai.Config{}, func(w http.ResponseWriter, r *http.Request) {
			var body struct{ Messages []map[string]any }
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages[0]) != 2 {
				t.Errorf("%s: sent %v, %v", stored, body, err)
			}
			respond(200, "application/json", plain)(w, r)
		})
		if _, err := m.Query(t.Context(), []model.Message{{Role: model.Assistant, Content: "a", ProviderData: json.RawMessage(stored)}}); err != nil {
			t.Errorf("%s: %v", stored, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	for _, stream := range []bool{false, true} {
		var got http.Header
		c := openai.Config{APIKey: secret, Stream: stream, Headers: map[string]string{"X-Title": "a b", "http-referer": "https://example.org"}}
		_, err := ask(t, c, func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Clone()
			respond(200, "application/json", plain)(w, r)
		})
		if err != nil || got.Get("X-Title") != "a b" || got.Get("HTTP-Referer") != "https://example.org" || got.Get("Authorization") != "Bearer "+secret {
			t.Errorf("stream %t: %v, %v", stream, got, err)
		}
		if text := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(text, "a b") || !strings.Contains(text, "X-Title") {
			t.Error(text)
		}
	}
}

// TestProvider runs the conformance suite.
func TestProvider(t *testing.T) {
	const js, sse = "application/json", "text/event-stream"
	modeltest.Run(t, modeltest.Provider{
		New: func(s modeltest.Settings) (modeltest.Model, error) {
			return openai.New(openai.Config{
				Name: "m", BaseURL: s.BaseURL + "/v1", APIKey: s.Key, Stream: s.Stream, Timeout: s.Timeout, HTTPClient: s.Client,
			})
		},
		Plain: plain, Streamed: streamed, FirstEvent: "data: {\"choices\":[]}\n\n",
		StreamedPieces: func(pieces ...string) string {
			var b strings.Builder
			for _, p := range pieces {
				text, _ := json.Marshal(p)
				fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", text)
			}
			b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":100}}\n\ndata: [DONE]\n\n")
			return b.String()
		},
		Faults: map[string]modeltest.Fault{
			"error in good": {Serve: modeltest.OKHandler(js, `{"error":{"message":"upstream","code":502}}`)},
			"busy in good":  {Serve: modeltest.OKHandler(js, `{"error":{"message":"slow down","code":429}}`)},
			"no choices":    {Serve: modeltest.OKHandler(js, `{"choices":[]}`)},
			"no finish":     {Serve: modeltest.OKHandler(js, `{"choices":[{"message":{"content":"x"}}]}`)},
			"no credit":     {Serve: modeltest.ErrorHandler(429, `{"error":{"code":"insufficient_quota"}}`), Status: model.AuthenticationError},
			"too long":      {Serve: modeltest.ErrorHandler(400, `{"error":{"code":"context_length_exceeded"}}`), Status: model.ContextWindowExceeded},
			"refused":       {Serve: modeltest.ErrorHandler(400, `{"error":{"code":"content_filter"}}`), Status: model.ContentRefused},
		},
		Echoes: map[string]modeltest.Echo{
			"refusal": {Status: 401, Kind: js, Body: `{"error":{"message":"KEY"}}`},
			"text":    {Status: 500, Kind: "text/plain", Body: `not good: "KEY"`},
			"error":   {Status: 200, Kind: js, Body: `{"error":{"message":"KEY"}}`},
			"answer":  {Status: 200, Kind: js, Body: `{"echo":"KEY","choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`},
			"details": {Status: 200, Kind: js, Body: `{"choices":[{"message":{"content":"x","reasoning_details":[{"data":"KEY"}]},"finish_reason":"stop"}]}`},
			"event":   {Stream: true, Status: 200, Kind: sse, Body: "data: {\"error\":{\"message\":\"KEY\"}}\n\n"},
			"stream":  {Stream: true, Status: 200, Kind: sse, Body: "data: {\"echo\":\"KEY\",\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n"},
		},
	})
}

// The request of a conversation with tools and images.
func TestRequestWithToolsAndImages(t *testing.T) {
	var body []byte
	m := connect(t, openai.Config{Tools: []model.ToolDefinition{{
		Name: "bash", Description: "Run <it>.", Parameters: json.RawMessage(`{"type":"object"}`),
	}}}, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, plain)
	})
	image := model.Image{MediaType: "image/png", Data: []byte("png")}
	_, err := m.Query(t.Context(), []model.Message{
		{Role: model.User, Content: "see", Images: []model.Image{image}},
		{Role: model.Assistant, ToolCalls: []model.ToolCall{{ID: "a", Name: "bash", Arguments: `{"command":"ls"}`}, {ID: "b", Name: "bash", Arguments: `{}`}}},
		{Role: model.Tool, ToolCallID: "a", Content: "out", Images: []model.Image{image}},
		{Role: model.Tool, ToolCallID: "b", Content: ""},
		{Role: model.Assistant, Content: "hm", ToolCalls: []model.ToolCall{{ID: "c", Name: "bash", Arguments: `{}`}}},
		{Role: model.Tool, ToolCallID: "c", Content: "end", Images: []model.Image{image}},
	})
	require.NoError(t, err)
	const picture = `{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}`
	const follows = `{"role":"user","content":[{"type":"text","text":"The images of the output above:"},` + picture + `]}`
	want := `{"model":"m","stream":false,"messages":[
		{"role":"user","content":[{"type":"text","text":"see"},` + picture + `]},
		{"role":"assistant","tool_calls":[
			{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},
			{"id":"b","type":"function","function":{"name":"bash","arguments":"{}"}}]},
		{"role":"tool","content":"out","tool_call_id":"a"},
		{"role":"tool","content":"(empty)","tool_call_id":"b"},
		` + follows + `,
		{"role":"assistant","content":"hm","tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{}"}}]},
		{"role":"tool","content":"end","tool_call_id":"c"},
		` + follows + `],
		"tools":[{"type":"function","function":{"name":"bash","description":"Run <it>.","parameters":{"type":"object"}}}]}`
	var got, expected any
	require.NoError(t, json.Unmarshal(body, &got))
	require.NoError(t, json.Unmarshal([]byte(want), &expected))
	assert.Equal(t, expected, got, "request")
}
