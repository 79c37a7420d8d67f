package fake_test

import (
	"encoding/json"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/minibench/mini/model/fake"
)

// A third-party client library can call the server with a tool.
func TestGoOpenAI(t *testing.T) {
	_, l, stop := serve(t, fake.Config{})
	defer stop()
	config := openai.DefaultConfig("sk-marker")
	config.BaseURL, config.HTTPClient = "http://fake/v1", client(l)
	tool := openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
		Name: "bash", Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`),
	}}
	first, err := openai.NewClientWithConfig(config).CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{
		Model: "m", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}}, Tools: []openai.Tool{tool},
	})
	if err != nil {
		t.Fatal(err)
	}
	choice := first.Choices[0]
	if calls := choice.Message.ToolCalls; choice.FinishReason != "tool_calls" || len(calls) != 1 || calls[0].Function.Arguments != `{"command":"ls"}` {
		t.Errorf("%+v", choice)
	}
	if first.Usage.PromptTokens == 0 || choice.Message.ReasoningContent != "Where am I?" {
		t.Errorf("%+v, %q", first.Usage, choice.Message.ReasoningContent)
	}
}
