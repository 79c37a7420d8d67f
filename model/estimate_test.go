package model_test

import (
	"testing"

	"github.com/minibench/mini/model"
)

func TestEstimateTokens(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "a": 1, "hello": 2, "\xff\xfe\xfd\xfc": 2, "1234567": 2, "12345678": 3} {
		if got := model.EstimateTextTokens(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
	got := model.EstimateTokens([]model.Message{
		{Role: model.User, Content: "hello"},
		{Images: []model.Image{{}}, ToolCalls: []model.ToolCall{{Name: "bash", Arguments: `{"command":"ls"}`}}},
	})
	if want := int64(4+2) + 4 + 1000 + 4 + 2 + 5; got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
}
