package fake_test

import (
	"encoding/json"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/openai"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
			answer := first.Message
			if answer.Reasoning != "Where am I?" || answer.Content != "Look." || len(answer.ToolCalls) != 1 || answer.ToolCalls[0].Arguments != `{"command":"ls"}` {
				t.Errorf("%s, stream %t: %+v", api, stream, answer)
			}
			history = append(history, answer, model.Message{Role: model.Tool, ToolCallID: answer.ToolCalls[0].ID, Content: "README"})
			second, err := m.Query(t.Context(), history)
			if err != nil {
				t.Fatal(err)
			}
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
