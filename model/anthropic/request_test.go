package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/modeltest"
)

const secret = modeltest.Key

var respond = modeltest.StaticHandler

func connect(t *testing.T, c anthropic.Config, serve http.HandlerFunc) *anthropic.Model {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	c.BaseURL = server.URL
	if c.Name == "" {
		c.Name = "claude"
	}
	m, err := anthropic.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return m
}

// sent returns the body and the request that a model sends for messages.
func sent(t *testing.T, c anthropic.Config, messages []model.Message) ([]byte, *http.Request) {
	t.Helper()
	var body []byte
	var request *http.Request
	m := connect(t, c, func(w http.ResponseWriter, r *http.Request) {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		request = r
		respond(200, "application/json", plain)(w, r)
	})
	_, err := m.Query(t.Context(), messages)
	require.NoError(t, err)
	return body, request
}

var bash = []model.ToolDefinition{{
	Name: "bash", Description: "Run a command.",
	Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","description":"<the> command"}},"required":["command"],"additionalProperties":false}`),
}}

func call(id, command string) model.ToolCall {
	b, _ := json.Marshal(map[string]string{"command": command}) //nolint:errchkjson // strings
	return model.ToolCall{ID: id, Name: "bash", Arguments: string(b)}
}

// TestRequests checks the exact request bodies, except for white space.
func TestRequests(t *testing.T) {
	system := model.Message{Role: model.System, Content: "be <brief> & kind"}
	user := func(text string) model.Message { return model.Message{Role: model.User, Content: text} }
	assistant := func(text string, calls ...model.ToolCall) model.Message {
		return model.Message{Role: model.Assistant, Content: text, ToolCalls: calls}
	}
	result := func(id, text string) model.Message {
		return model.Message{Role: model.Tool, ToolCallID: id, Content: text}
	}
	gif := model.Image{MediaType: "image/gif", Data: []byte("GIF89a")}
	tests := map[string]struct {
		config   anthropic.Config
		messages []model.Message
	}{
		"least": {anthropic.Config{}, []model.Message{user("hello")}},
		"text": {anthropic.Config{Cache: anthropic.CacheHour, Stream: true}, []model.Message{
			system, user("task"), assistant("one"), user("two"), assistant("three"), user("four"),
		}},
		"no cache":     {anthropic.Config{Cache: anthropic.CacheOff}, []model.Message{system, user("task")}},
		"cache of own": {anthropic.Config{Kwargs: map[string]any{"cache_control": map[string]any{"type": "ephemeral"}}}, []model.Message{system, user("task")}},
		"kwargs": {anthropic.Config{MaxTokens: 100, Kwargs: map[string]any{
			"temperature": 0, "top_k": 5, "max_tokens": 8000, "metadata": map[string]any{"user_id": "u"}, "stop_sequences": []string{"x"},
			"betas": []any{"a-1", "b-2"}, "thinking": map[string]any{"type": "enabled", "budget_tokens": 4000}, "nobody_knows_this": []any{nil, 1.5},
		}}, []model.Message{user("task")}},
		"thinking makes room": {anthropic.Config{Kwargs: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 30000}}}, []model.Message{user("task")}},
		"empty and alike": {anthropic.Config{}, []model.Message{
			{Role: model.System, Content: " \n"},
			system,
			{Role: model.System, Content: "second"},
			user(""), user("b"), assistant(" "), assistant(""), user("\n\t"),
			{Role: model.System, Content: "late"},
			user("c\xff\x00d"),
		}},
		"tools": {anthropic.Config{Tools: bash}, []model.Message{
			user("task"), assistant("", call("toolu_1", "ls <&> \u2028")), result("toolu_1", ""),
			assistant("two", call("toolu_2", "a"), call("toolu_3", "b")), user("beside"), result("toolu_3", "B"), result("toolu_2", "A"),
			assistant("three", call("toolu_4", "c"), call("toolu_5", "d")), result("toolu_5", "D"), user("and then?"),
		}},
		"foreign calls": {anthropic.Config{Tools: bash}, []model.Message{
			system, user("task"),
			assistant("", model.ToolCall{ID: "functions.bash:0", Name: "ba sh", Arguments: `{"command": "ls`}, model.ToolCall{Arguments: `"text"`}),
			result("functions.bash:0", "torn"), result("", "no id"), assistant("x", model.ToolCall{ID: "last", Name: "bash", Arguments: " {} "}),
		}},
		"kept": {anthropic.Config{Tools: bash}, []model.Message{
			user("task"),
			{
				Role: model.Assistant, Content: "ignored", Reasoning: "ignored", ToolCalls: []model.ToolCall{call("toolu_1", "ls")},
				ProviderData: json.RawMessage(`{"anthropic":[{"type":"thinking","thinking":"a<b","signature":"c2ln+/="},{"type":"redacted_thinking","data":"ZGF0YQ=="},{"type":"tool_use","id":"toolu_1","name":"bash","input":{"command":"ls"}}]}`),
			},
			result("toolu_1", "file"),
			{Role: model.Assistant, Content: "of another provider", ProviderData: json.RawMessage(`[{"encrypted":"x"}]`)},
			user("go on"),
		}},
		"images": {anthropic.Config{Tools: bash}, []model.Message{
			{Role: model.User, Content: "look", Images: []model.Image{gif, {MediaType: "image/png", Data: []byte{0, 255}}}},
			assistant("", call("toolu_1", "shot")),
			{Role: model.Tool, ToolCallID: "toolu_1", Content: "shown", Images: []model.Image{gif}},
			assistant("hm"),
			{Role: model.User, Images: []model.Image{gif}},
			assistant("", call("toolu_2", "shot")),
			{Role: model.Tool, ToolCallID: "toolu_2", Images: []model.Image{gif}},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			body, _ := sent(t, test.config, test.messages)
			var got bytes.Buffer
			require.NoError(t, json.Indent(&got, body, "", "  "))
			got.WriteByte('\n')
			golden.Check(t, filepath.Join("testdata", "requests", strings.ReplaceAll(name, " ", "-")+".json"), got.String())
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "of-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "of-the-environment")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Custom: of-the-environment")
	user := []model.Message{{Role: model.User, Content: "x"}}
	_, r := sent(t, anthropic.Config{
		APIKey: secret + "\n", Headers: map[string]string{"X-Team": "a b"}, Kwargs: map[string]any{"betas": []string{"a-1", "b-2"}},
	}, user)
	want := map[string]string{
		"X-Api-Key": secret, "Authorization": "", "X-Custom": "", "X-Team": "a b", "Anthropic-Beta": "a-1,b-2",
		"Anthropic-Version": "2023-06-01", "Content-Type": "application/json",
	}
	for name, value := range want {
		assert.Equal(t, value, r.Header.Get(name), "%s", name)
	}
	if r.URL.Path != "/v1/messages" || r.Method != http.MethodPost {
		t.Errorf("%s %s", r.Method, r.URL)
	}
	if _, r := sent(t, anthropic.Config{}, user); r.Header.Get("X-Api-Key") != "" || r.Header.Get("Authorization") != "" {
		t.Errorf("a key from somewhere: %v", r.Header)
	}
}

// cachePoints returns the messages of a request without cache points, which of the
// messages have one, and the number of cache points in the request.
func cachePoints(t *testing.T, body []byte) (messages []string, points []bool, all int) {
	t.Helper()
	var request struct {
		Messages []map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(body, &request))
	const point = `,"cache_control":{"type":"ephemeral"}`
	for _, m := range request.Messages {
		content := string(m["content"])
		messages = append(messages, string(m["role"])+strings.ReplaceAll(content, point, ""))
		points = append(points, strings.Contains(content, point))
	}
	return messages, points, strings.Count(string(body), "cache_control")
}

// A step repeats the prompt of the previous step and reads it from the cache.
func TestStepsShareCachedPrefix(t *testing.T) {
	history := []model.Message{{Role: model.System, Content: "s"}, {Role: model.User, Content: "task"}}
	var before []string
	var written []bool
	for step := range 6 {
		body, _ := sent(t, anthropic.Config{Tools: bash}, history)
		now, points, all := cachePoints(t, body)
		if len(before) > 0 {
			if diff := cmp.Diff(before, now[:len(before)]); diff != "" {
				t.Fatalf("step %d does not repeat the previous prompt: %s", step, diff)
			}
			last := len(before) - 1
			if !written[last] || !points[last] {
				t.Errorf("step %d: written at %v, read at %v", step, written, points)
			}
		}
		if all > 4 || !points[len(points)-1] {
			t.Errorf("step %d: %d points, in messages %v", step, all, points)
		}
		before, written = now, points
		id := string(rune('a' + step))
		history = append(history, model.Message{
			Role: model.Assistant, ToolCalls: []model.ToolCall{call(id, "ls"), call(id+"2", "pwd")},
			ProviderData: json.RawMessage(`{"anthropic":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"` + id + `","name":"bash","input":{"command":"ls"}},{"type":"tool_use","id":"` + id + `2","name":"bash","input":{"command":"pwd"}}]}`),
		}, model.Message{Role: model.Tool, ToolCallID: id, Content: "x"}, model.Message{Role: model.Tool, ToolCallID: id + "2", Content: "y"})
	}
}

func TestImageOfAnotherType(t *testing.T) {
	m := connect(t, anthropic.Config{}, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
	_, err := m.Query(t.Context(), []model.Message{{Role: model.User, Images: []model.Image{{MediaType: "image/svg+xml"}}}})
	if e, ok := errors.AsType[*model.Error](err); !ok || e.Status != model.BadRequest || e.Retryable || !strings.Contains(e.Hint, "PNG") {
		t.Errorf("error %v", err)
	}
}
