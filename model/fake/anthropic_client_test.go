package fake_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/fake"
)

// converse makes a client of the Messages API that asks a server in memory.
func converse(t *testing.T, l *fake.Memory, stream bool) model.Model {
	t.Helper()
	m, err := anthropic.New(anthropic.Config{
		Name: "m", APIKey: "sk-marker", BaseURL: "http://fake", HTTPClient: client(l), Stream: stream,
		Kwargs: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 2048}},
		Tools: []model.Definition{{
			Name: "bash", Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A client of the Messages API has a conversation with a tool, thoughts and a
// system prompt that is cached.
func TestAnthropicClient(t *testing.T) {
	for _, stream := range []bool{false, true} {
		s, l, stop := serve(t, fake.Config{})
		m := converse(t, l, stream)
		history := []model.Message{{Role: model.System, Content: "be brief"}, {Role: model.User, Content: "hello"}}
		first, err := m.Query(t.Context(), history)
		if err != nil {
			t.Fatal(err)
		}
		said := first.Message
		if said.Reasoning != "Where am I?" || said.Content != "Look." || len(said.Calls) != 1 || said.Calls[0].Arguments != `{"command":"ls"}` {
			t.Errorf("stream %t: %+v", stream, said)
		}
		history = append(history, said, model.Message{Role: model.Tool, CallID: said.Calls[0].ID, Content: "README"})
		second, err := m.Query(t.Context(), history)
		if err != nil {
			t.Fatal(err)
		}
		if second.Finish != model.FinishStop || second.Message.Content != "Done." {
			t.Errorf("stream %t: %+v", stream, second)
		}
		told := first.Usage.Add(second.Usage)
		told.Unpriced = 0
		stop()
		charged := s.Books().Charged.Usage
		if charged.Reasoning = told.Reasoning; charged != told || told.CacheRead == 0 || told.CacheWrite == 0 {
			t.Errorf("stream %t: told %+v, charged %+v", stream, told, charged)
		}
	}
}

func TestAnthropicClientSeesFaults(t *testing.T) {
	tests := []struct {
		fault  string
		stream bool
		code   int
		want   string
	}{
		{"overloaded", false, 529, "Overloaded"},
		{"overloaded", true, 529, "Overloaded"},
		{"rate-limit", true, http.StatusTooManyRequests, "429"},
		{"context", false, http.StatusBadRequest, "prompt is too long"},
		{"error-event", true, http.StatusInternalServerError, "500"},
		{"reset-mid", false, 0, "EOF"},
		{"drop", true, 0, "EOF"},
		{"cut", true, 0, "message_stop"},
	}
	for _, test := range tests {
		s, l, stop := serve(t, fake.Config{Plan: &fake.Plan{Rules: []fake.Rule{{Faults: []string{test.fault}}}}})
		_, err := converse(t, l, test.stream).Query(t.Context(), []model.Message{{Role: model.User, Content: "hello"}})
		e, ok := errors.AsType[*model.Error](err)
		if !ok || e.Code != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, stream %t: %v; want %d %s", test.fault, test.stream, err, test.code, test.want)
		}
		stop()
		if b := s.Books(); b.Seen != 1 {
			t.Errorf("%s: %d requests", test.fault, b.Seen)
		}
	}
}
