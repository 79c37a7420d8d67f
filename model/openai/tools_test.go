package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/openai"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestToolCallsOfAnswers(t *testing.T) {
	two := []model.ToolCall{{ID: "a", Name: "bash", Arguments: `{"command":"ls"}`}, {ID: "b", Name: "bash", Arguments: `{}`}}
	withoutIDs := []model.ToolCall{{Name: "bash", Arguments: `{"command":"ls"}`}, {Name: "bash", Arguments: `{}`}}
	chunks := func(deltas ...string) string {
		var b strings.Builder
		for _, d := range deltas {
			b.WriteString(`data: {"choices":[{"index":0,"delta":{` + d + `}}]}` + "\n\n")
		}
		return b.String() + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	}
	for name, tt := range map[string]struct {
		stream bool
		body   string
		want   model.Message
	}{
		"plain": {
			false, `{"choices":[{"message":{"role":"assistant","content":null,"reasoning_content":"so","tool_calls":[
			{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},
			{"id":"b","type":"function","function":{"name":"bash","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			model.Message{ToolCalls: two, Reasoning: "so"},
		},
		"in parts": {true, chunks(
			`"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"bash","arguments":""}}]`,
			`"tool_calls":[{"index":0,"function":{"arguments":"{\"com"}}]`,
			`"tool_calls":[{"index":0,"function":{"arguments":"mand\":\"ls\"}"}},{"index":1,"id":"b","type":"function","function":{"name":"bash","arguments":"{}"}}]`,
			`"reasoning":"or"`, `"reasoning":" so"`,
		), model.Message{ToolCalls: two, Reasoning: "or so"}},
		"in parts that take turns": {true, chunks(
			`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"command\""}},{"index":1,"id":"b","function":{"name":"bash"}}]`,
			`"tool_calls":[{"index":1,"function":{"arguments":"{"}},{"index":0,"function":{"arguments":":\"ls\"}"}}]`,
			`"tool_calls":[{"index":1,"function":{"arguments":"}"}}]`,
		), model.Message{ToolCalls: two}},
		"one index for all": {true, chunks(
			`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"command\":"}}]`,
			`"tool_calls":[{"index":0,"function":{"arguments":"\"ls\"}"}}]`,
			`"tool_calls":[{"index":0,"id":"b","function":{"name":"bash","arguments":"{"}}]`,
			`"tool_calls":[{"index":0,"function":{"arguments":"}"}}]`,
		), model.Message{ToolCalls: two}},
		"no index": {true, chunks(
			`"tool_calls":[{"id":"a","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]`,
			`"tool_calls":[{"id":"b","function":{"name":"bash","arguments":"{}"}}]`,
		), model.Message{ToolCalls: two}},
		"id and name in each part": {true, chunks(
			`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"command\":"}}]`,
			`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"\"ls\"}"}}]`,
			`"content":"","tool_calls":[{"index":1,"id":"b","function":{"name":"bash","arguments":"{}"}}]`,
		), model.Message{ToolCalls: two}},
		"no index, in parts": {true, chunks(
			`"tool_calls":[{"id":"a","function":{"name":"bash","arguments":""}}]`,
			`"tool_calls":[{"function":{"arguments":"{\"command\":"}}]`, `"tool_calls":[{"function":{"arguments":"\"ls\"}"}}]`,
			`"tool_calls":[{"id":"b","function":{"name":"bash","arguments":"{"}}]`, `"tool_calls":[{"function":{"arguments":"}"}}]`,
		), model.Message{ToolCalls: two}},
		"parts that are counted": {true, chunks(
			`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":""}}]`,
			`"tool_calls":[{"index":1,"function":{"arguments":"{\"command\":"}}]`, `"tool_calls":[{"index":2,"function":{"arguments":"\"ls\"}"}}]`,
			`"tool_calls":[{"index":3,"id":"b","function":{"name":"bash","arguments":"{}"}}]`,
		), model.Message{ToolCalls: two}},
		"an index that is a text": {true, chunks(
			`"tool_calls":[{"index":"0","id":"a","function":{"name":"bash","arguments":"{\"command\":"}},{"index":"1","id":"b","function":{"name":"bash"}}]`,
			`"tool_calls":[{"index":"0","function":{"arguments":"\"ls\"}"}},{"index":"1","function":{"arguments":"{}"}}]`,
		), model.Message{ToolCalls: two}},
		"whole calls of one index without ids": {true, chunks(
			`"tool_calls":[{"index":0,"function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]`,
			`"tool_calls":[{"index":0,"function":{"name":"bash","arguments":"{}"}}]`,
		), model.Message{ToolCalls: withoutIDs}},
		"whole calls without an index or ids": {true, chunks(
			`"tool_calls":[{"function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"function":{"name":"bash","arguments":"{}"}}]`,
		), model.Message{ToolCalls: withoutIDs}},
		"a name in each part, no id": {true, chunks(
			`"tool_calls":[{"index":0,"function":{"name":"bash","arguments":"{\"command\":"}}]`,
			`"tool_calls":[{"index":0,"function":{"name":"bash","arguments":"\"ls\"}"}}]`,
			`"tool_calls":[{"index":1,"function":{"name":"bash","arguments":"{}"}}]`,
		), model.Message{ToolCalls: withoutIDs}},
		"id and name after the arguments": {true, chunks(
			`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]`,
			`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":""}}]`,
			`"tool_calls":[{"index":1,"id":"b","function":{"name":"bash","arguments":"{}"}}]`,
		), model.Message{ToolCalls: two}},
		"a call once more at the end": {true, chunks(
			`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"index":1,"id":"b","function":{"name":"bash","arguments":"{}"}}]`,
			`"tool_calls":[{"index":1,"id":"b","function":{"name":"bash","arguments":"{}"}}]`,
		), model.Message{ToolCalls: two}},
		"arguments that are objects": {
			false, `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"bash","arguments":{"command":"ls"}}},
			{"id":"b","function":{"name":"bash","arguments":{}}}]},"finish_reason":"tool_calls"}]}`,
			model.Message{ToolCalls: two},
		},
		"arguments that are objects, streamed": {true, chunks(
			`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":{"command":"ls"}}}]`,
			`"tool_calls":[{"index":0,"function":{"arguments":""}},{"index":1,"id":"b","function":{"name":"bash","arguments":{}}}]`,
		), model.Message{ToolCalls: two}},
		"objects of one id": {true, chunks(
			`"tool_calls":[{"id":"a","function":{"name":"bash","arguments":{"command":"ls"}}}]`, `"tool_calls":[{"id":"a","function":{"name":"bash","arguments":{"command":"pwd"}}}]`,
		), model.Message{ToolCalls: []model.ToolCall{two[0], {ID: "a", Name: "bash", Arguments: `{"command":"pwd"}`}}}},
		"an empty object before the arguments": {true, chunks(
			`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{}"}}]`, `"tool_calls":[{"index":0,"function":{"arguments":"{\"command\":"}}]`,
			`"tool_calls":[{"index":0,"function":{"arguments":"\"ls\"}"}},{"index":1,"id":"b","function":{"name":"bash","arguments":"{}"}}]`,
		), model.Message{ToolCalls: two}},
		"ids that are numbers": {
			false, `{"choices":[{"message":{"tool_calls":[{"id":1,"function":{"name":"bash","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			model.Message{ToolCalls: []model.ToolCall{{ID: "1", Name: "bash", Arguments: "{}"}}},
		},
		"an index that is an object": {true, chunks(
			`"tool_calls":[{"index":{},"id":"a","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"index":[],"id":"b","function":{"name":"bash","arguments":"{}"}}]`,
		), model.Message{ToolCalls: two}},
	} {
		t.Run(name, func(t *testing.T) {
			kind := "application/json"
			if tt.stream {
				kind = "text/event-stream"
			}
			got, err := ask(t, openai.Config{Stream: tt.stream}, respond(200, kind, tt.body))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Role = model.Assistant
			if diff := cmp.Diff(tt.want, got.Message); diff != "" || got.FinishReason != model.FinishToolCalls {
				t.Errorf("finish %q, message (-want +got):\n%s", got.FinishReason, diff)
			}
			if len(got.Raw) == 0 {
				t.Error("the answer is not kept")
			}
		})
	}
}
