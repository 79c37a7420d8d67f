package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
)

// FuzzAnswer parses any bytes as a response. The result is an error, or a reply that
// can be stored and sent back.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(plain), false)
	f.Add([]byte(streamed), true)
	f.Add([]byte(withoutNames(streamed)), true)
	f.Add([]byte(failure("overloaded_error", "x")), false)
	f.Add([]byte("data: "+failure("overloaded_error", "x")+"\n"), true)
	f.Add([]byte(message(`{"type":"tool_use","input":"{"}`, `"tool_use"`)), false)
	m, err := anthropic.New(anthropic.Config{Name: "m", Tools: bash})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		raw, err := json.RawMessage(body), error(nil)
		if stream {
			raw, err = anthropic.Receive(bytes.NewReader(body))
		}
		var reply model.Reply
		if err == nil {
			reply, err = anthropic.ParseReply(raw, model.Price{Input: 1})
		}
		if err != nil {
			if _, ok := errors.AsType[*model.Error](err); !ok {
				t.Fatalf("error %v, want a *model.Error", err)
			}
			return
		}
		if reply.FinishReason == "" || !json.Valid(reply.Raw) || reply.Usage.Prompt < 0 || reply.Usage.Completion < 0 || reply.Cost < 0 {
			t.Errorf("reply %+v", reply)
		}
		history := []model.Message{{Role: model.User, Content: "x"}, reply.Message}
		for _, c := range reply.Message.ToolCalls {
			history = append(history, model.Message{Role: model.Tool, ToolCallID: c.ID})
		}
		history = append(history, model.Message{Role: model.User, Content: "y"})
		if _, err := m.Body(history); err != nil {
			t.Errorf("%+v cannot be sent back: %v", reply.Message, err)
		}
	})
}
