package fake_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/openai"
)

// ask sends one request to a server, without a network.
func ask(t *testing.T, s *fake.Server, api, body string, header ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path(api), strings.NewReader(body))
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func server(t *testing.T, c fake.Config) *fake.Server {
	t.Helper()
	if c.Script == nil {
		c.Script = script(t, replies)
	}
	s, err := fake.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The server rejects what providers reject.
func TestBadRequests(t *testing.T) {
	const hello = `{"role":"user","content":"hello"}`
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]}`
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"bash","input":{}}]}`
	tests := map[string]struct{ api, body, want string }{
		"no JSON":             {"openai", `{`, "could not parse the JSON body"},
		"a list":              {"openai", `[]`, "Invalid type"},
		"nothing":             {"openai", ``, "could not parse the JSON body"},
		"deep":                {"openai", strings.Repeat("[", 1e5), "could not parse the JSON body"},
		"no model":            {"openai", `{"messages":[` + hello + `]}`, "model parameter"},
		"no messages":         {"openai", `{"model":"m"}`, "empty array"},
		"messages as text":    {"openai", `{"model":"m","messages":"hello"}`, "Invalid type for 'messages': got string."},
		"unknown role":        {"openai", `{"model":"m","messages":[{"role":"exit","content":"x"}]}`, "Invalid value: 'exit'"},
		"no content":          {"openai", `{"model":"m","messages":[{"role":"user"}]}`, "messages[0].content"},
		"no result":           {"openai", `{"model":"m","messages":[` + hello + `,` + call + `]}`, "did not have response messages: c1"},
		"another's result":    {"openai", `{"model":"m","messages":[` + hello + `,` + call + `,{"role":"tool","tool_call_id":"c2","content":"x"}]}`, "must be a response to"},
		"something between":   {"openai", `{"model":"m","messages":[` + hello + `,` + call + `,` + hello + `]}`, "did not have response messages: c1"},
		"empty result":        {"openai", `{"model":"m","messages":[` + hello + `,` + call + `,{"role":"tool","tool_call_id":"c1"}]}`, "messages[2].content"},
		"no max_tokens":       {"anthropic", `{"model":"m","messages":[` + hello + `]}`, "max_tokens: Field required"},
		"no tokens":           {"anthropic", `{"model":"m","max_tokens":0,"messages":[` + hello + `]}`, "greater than or equal to 1"},
		"Anthropic, no model": {"anthropic", `{"max_tokens":9,"messages":[` + hello + `]}`, "model: Field required"},
		"Anthropic, nothing":  {"anthropic", `{"model":"m","max_tokens":9,"messages":[]}`, "at least one message"},
		"system as a message": {"anthropic", `{"model":"m","max_tokens":9,"messages":[{"role":"system","content":"x"}]}`, "Unexpected role"},
		"empty message":       {"anthropic", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":""}]}`, "non-empty content"},
		"no tool_result":      {"anthropic", `{"model":"m","max_tokens":9,"messages":[` + hello + `,` + use + `,` + hello + `]}`, "without `tool_result` blocks immediately after: t1"},
		"tool_use at the end": {"anthropic", `{"model":"m","max_tokens":9,"messages":[` + hello + `,` + use + `]}`, "without `tool_result` blocks immediately after: t1"},
		"strange tool_result": {"anthropic", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"x"}]}]}`, "unexpected `tool_use_id`"},
		"changed thought": {"anthropic", `{"model":"m","max_tokens":9,"messages":[` + hello +
			`,{"role":"assistant","content":[{"type":"thinking","thinking":"other","signature":"abc"}]},` + hello + `]}`, "Invalid `signature` in `thinking` block"},
		"script at its end":           {"openai", simple("openai", "hello", 2), "script_exhausted"},
		"Anthropic, script's end":     {"anthropic", simple("anthropic", "hello", 2), "the script has no more replies: step 3 of 2"},
		"no replies for the instance": {"openai", simple("openai", "hello", 0), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake.Config{}
			if test.want == "" {
				c.Script, test.want = script(t, "a: [x]"), "unknown_instance"
			}
			s := server(t, c)
			status, answer := ask(t, s, test.api, test.body)
			if status != 400 || !strings.Contains(answer, test.want) || !json.Valid([]byte(answer)) {
				t.Errorf("%d %s, want %s", status, answer, test.want)
			}
			if b := s.Stats(); b.Requests[0].Outcome != fake.Refused || b.Charged.Replies != 0 {
				t.Errorf("outcome %s", b.Requests[0].Outcome)
			}
		})
	}
}

// The instance is the longest ID that is a word before the first reply.
func TestInstances(t *testing.T) {
	const yaml = `{"*": [other], django__django-1: [one], django__django-11: [eleven], "two words": [two], a/b.c: [path], a: [short]}`
	for name, test := range map[string]struct{ first, header, want string }{
		"a name":           {"fix django__django-11, please", "", "eleven"},
		"part of another":  {"fix django__django-1.", "", "one"},
		"part of none":     {"fix django__django-12", "", "other"},
		"the longest":      {"a django__django-1 and django__django-11", "", "eleven"},
		"two words":        {"these two words", "", "two"},
		"a path":           {"see a/b.c", "", "path"},
		"a header":         {"fix django__django-11", "X-Fake-Instance: a", "short"},
		"none":             {"hello", "", "other"},
		"none in a header": {"fix django__django-11", "X-Fake-Instance: b", "other"},
	} {
		for _, api := range []string{"openai", "anthropic"} {
			s := server(t, fake.Config{Script: script(t, yaml)})
			status, answer := ask(t, s, api, simple(api, test.first, 0), test.header)
			if status != 200 || !strings.Contains(answer, `"`+test.want+`"`) {
				t.Errorf("%s, %s: %d %s, want %s", name, api, status, answer, test.want)
			}
		}
	}
}

// Without usage in the script, four bytes are a token, and the prompt of the previous
// step is cached; for Anthropic up to a cache_control.
func TestPromptUsage(t *testing.T) {
	mark := func(text string) string {
		return `[{"type":"text","text":"` + text + `","cache_control":{"type":"ephemeral"}}]`
	}
	user := func(content string) string { return `{"role":"user","content":` + content + `}` }
	assistant := `{"role":"assistant","content":"1234567890"}` // a content of 12 bytes, a message of 43
	text := `"12345678901234567890123456789012345678"`         // 40 bytes; a message of 66
	anthropic := func(messages ...string) string {
		return `{"model":"m","max_tokens":9,"messages":[` + strings.Join(messages, ",") + `]}`
	}
	openai := func(messages ...string) string {
		return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
	}
	for name, test := range map[string]struct {
		api, body string
		want      model.Usage
	}{
		"first":           {"openai", openai(user(text)), model.Usage{Prompt: 17, Completion: 1}},
		"second":          {"openai", openai(user(text), assistant, user(text)), model.Usage{Prompt: 44, CacheRead: 17, Completion: 1}},
		"no mark":         {"anthropic", anthropic(user(text), assistant, user(text)), model.Usage{Prompt: 23, Completion: 1}},
		"first mark":      {"anthropic", anthropic(user(mark("x")), assistant, user(text)), model.Usage{Prompt: 30, CacheRead: 17, Completion: 1}},
		"mark at the end": {"anthropic", anthropic(user(text), assistant, user(mark("x"))), model.Usage{Prompt: 30, CacheRead: 10, CacheWrite: 20, Completion: 1}},
		"only a mark":     {"anthropic", anthropic(user(mark("x"))), model.Usage{Prompt: 17, CacheWrite: 17, Completion: 1}},
	} {
		s := server(t, fake.Config{Script: script(t, "[x, x, x]")})
		if status, answer := ask(t, s, test.api, test.body); status != 200 {
			t.Fatalf("%s: %d %s", name, status, answer)
		}
		assert.Equal(t, test.want, s.Stats().Requests[0].Usage, "%s: ", name)
	}
}

// Tool calls of the script are sent with their ids; without tools in the request they
// become text.
func TestCallsOfTheScript(t *testing.T) {
	const yaml = `
- content: Now.
  tool_calls: [{command: ls}, {id: mine, name: browser, arguments: "{no JSON"}, {command: pwd}]
`
	for _, test := range []struct{ api, body, want string }{
		{"openai", body("openai", false), `"content":"Now.","tool_calls":[{"id":"call_fake00000001_0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},` +
			`{"id":"mine","type":"function","function":{"name":"browser","arguments":"{no JSON"}},{"id":"call_fake00000001_2",`},
		{"openai", simple("openai", "hello", 0), `"content":"Now.\n\n` + "```bash\\nls\\npwd\\n```" + `"`},
		{"anthropic", body("anthropic", false), `{"type":"text","text":"Now."},{"type":"tool_use","id":"toolu_fake00000001_0","name":"bash","input":{"command":"ls"}},` +
			`{"type":"tool_use","id":"mine","name":"browser","input":"{no JSON"},`},
		{"anthropic", simple("anthropic", "hello", 0), `"text":"Now.\n\n` + "```bash\\nls\\npwd\\n```" + `"`},
	} {
		s := server(t, fake.Config{Script: script(t, yaml)})
		if status, answer := ask(t, s, test.api, test.body); status != 200 || !strings.Contains(answer, test.want) {
			t.Errorf("%s: %d %s\nwant %s", test.api, status, answer, test.want)
		}
	}
}

// converse returns a client of an in-memory server.
func converse(t *testing.T, api string, l *fake.MemoryListener, stream bool) model.Model {
	t.Helper()
	tools := []model.ToolDefinition{{Name: "bash", Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)}}
	var m model.Model
	var err error
	if api == "openai" {
		m, err = openai.New(openai.Config{Name: "m", APIKey: "sk-marker", BaseURL: "http://fake/v1", HTTPClient: client(l), Stream: stream, Tools: tools})
	} else {
		m, err = anthropic.New(anthropic.Config{
			Name: "m", APIKey: "sk-marker", BaseURL: "http://fake", HTTPClient: client(l), Stream: stream, Tools: tools,
			Kwargs: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 2048}},
		})
	}
	require.NoError(t, err)
	return m
}

// A conversation with a tool, thinking and a cached system prompt.
func TestClients(t *testing.T) {
	for _, api := range []string{"openai", "anthropic"} {
		for _, stream := range []bool{false, true} {
			s, l, stop := serve(t, fake.Config{})
			m := converse(t, api, l, stream)
			history := []model.Message{{Role: model.System, Content: "be brief"}, {Role: model.User, Content: "hello"}}
			first, err := m.Query(t.Context(), history)
			require.NoError(t, err)
			answer := first.Message
			if answer.Reasoning != "Where am I?" || answer.Content != "Look." || len(answer.ToolCalls) != 1 || answer.ToolCalls[0].Arguments != `{"command":"ls"}` {
				t.Errorf("%s, stream %t: %+v", api, stream, answer)
			}
			history = append(history, answer, model.Message{Role: model.Tool, ToolCallID: answer.ToolCalls[0].ID, Content: "README"})
			second, err := m.Query(t.Context(), history)
			require.NoError(t, err)
			if second.FinishReason != model.FinishStop || second.Message.Content != "Done." {
				t.Errorf("%s, stream %t: %+v", api, stream, second)
			}
			counted := first.Usage.Add(second.Usage)
			counted.Unpriced = 0
			stop()
			stats := s.Stats()
			charged := stats.Charged.Usage
			if api == "anthropic" {
				charged.Reasoning = 0 // not reported
			}
			if charged != counted || counted.CacheRead == 0 || stats.Charged.Replies != 2 || stats.Requests[1].Step != 2 || !stats.Requests[1].Key {
				t.Errorf("%s, stream %t: the client counted %+v, the server charged %+v", api, stream, counted, charged)
			}
		}
	}
}
