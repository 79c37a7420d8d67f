package dialect

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/openai"
)

// chat is OpenAI's chat completions.
type chat struct{}

// Name implements Dialect.
func (chat) Name() string { return "chat" }

// Messages implements Dialect.
func (chat) Messages(b *Body) ([]model.Message, error) {
	var list []struct {
		Role       model.Role       `json:"role"`
		Content    json.RawMessage  `json:"content"`
		Reasoning  string           `json:"reasoning_content"`
		ToolCalls  []model.ToolCall `json:"tool_calls"`
		ToolCallID string           `json:"tool_call_id"`
	}
	if err := json.Unmarshal(b.Get("messages"), &list); err != nil {
		return nil, err
	}
	var out []model.Message
	for _, in := range list {
		m := model.Message{Role: in.Role, Content: partsText(in.Content), Reasoning: in.Reasoning, ToolCalls: in.ToolCalls, ToolCallID: in.ToolCallID}
		if in.Role == "developer" {
			m.Role = model.System
		}
		out = append(out, m)
	}
	return out, nil
}

// Reply implements Dialect.
func (chat) Reply(body []byte, p model.Price) (model.Reply, error) { return openai.ReadReply(body, p) }

// Stream implements Dialect.
func (chat) Stream(events iter.Seq2[[]byte, error], p model.Price) (model.Reply, error) {
	return openai.ReadStream(events, p)
}

// IsTerminal implements Dialect.
func (chat) IsTerminal(data []byte) bool { return string(data) == "[DONE]" }

// HasEventNames implements Dialect.
func (chat) HasEventNames() bool { return false }

// Problem implements Dialect.
func (chat) Problem(status int, message string) []byte { return openAIProblem(status, message) }

func (chat) keepTool(tool json.RawMessage) (json.RawMessage, bool) {
	return keepTypes(tool, "function", "custom")
}

var chatFields = strings.Fields(`model messages stream stream_options tools tool_choice parallel_tool_calls functions function_call
	temperature top_p top_k min_p n seed max_tokens max_completion_tokens stop frequency_penalty presence_penalty repetition_penalty
	logit_bias logprobs top_logprobs response_format reasoning_effort reasoning include_reasoning reasoning_split thinking
	enable_thinking thinking_budget preserve_thinking chat_template_kwargs verbosity prediction modalities usage store
	prompt_cache_key prompt_cache_retention cache_control safety_identifier user metadata service_tier vl_high_resolution_images`)

func (chat) fields() []string { return chatFields }

// AddUsage makes a streamed chat request report its usage. It returns whether the agent
// had not asked for that, so that IsUsageOnly events are not for it.
func AddUsage(b *Body) (added bool) {
	var options map[string]json.RawMessage
	if err := json.Unmarshal(b.Get("stream_options"), &options); err != nil || options == nil {
		options = map[string]json.RawMessage{}
	}
	if string(options["include_usage"]) == "true" {
		return false
	}
	options["include_usage"] = json.RawMessage("true")
	value, _ := json.Marshal(options) // parts of valid JSON
	b.Set("stream_options", value)
	return true
}

// IsUsageOnly reports whether an event of a chat stream has nothing but the usage.
func IsUsageOnly(data []byte) bool {
	var e struct {
		Choices *[]json.RawMessage
		Usage   json.RawMessage
	}
	return json.Unmarshal(data, &e) == nil && e.Choices != nil && len(*e.Choices) == 0 && len(e.Usage) > 0
}

// openAIProblem returns an error in the form of OpenAI's APIs.
func openAIProblem(status int, message string) []byte {
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "server_error"
	}
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": nil}}) // cannot fail
	return body
}
