package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/minibench/mini/model"
)

// openAI is OpenAI's chat completion API.
type openAI struct{}

var _ wireFormat = openAI{}

func (openAI) api() string { return "openai" }

type openAIRequest struct {
	Model         string          `json:"model"`
	Messages      []openAIMessage `json:"messages"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Usage struct {
		Include bool `json:"include"`
	} `json:"usage"`
	Tools []struct {
		Function tool `json:"function"`
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
}

type openAIMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

func (openAI) parse(body []byte) (*request, *problem) {
	var in openAIRequest
	if p := decode(body, &in); p != nil {
		return nil, p
	}
	// Sizes are those of the raw messages and tools.
	var raw struct {
		Messages []json.RawMessage `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
	}
	if p := decode(body, &raw); p != nil {
		return nil, p
	}
	switch {
	case in.Model == "":
		return nil, invalid("you must provide a model parameter")
	case len(in.Messages) == 0:
		return nil, invalidParam("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	if p := checkOpenAI(in.Messages); p != nil {
		return nil, p
	}
	r := &request{model: in.Model, stream: in.Stream, usageEvent: in.StreamOptions.IncludeUsage, cost: in.Usage.Include, marked: -1}
	for i, m := range in.Messages {
		r.turns = append(r.turns, turn{m.Role, len(raw.Messages[i]), texts(m.Content)})
	}
	var tools []tool
	for i, t := range in.Tools {
		tools = append(tools, t.Function)
		r.extra += len(raw.Tools[i])
	}
	if string(in.ToolChoice) != `"none"` {
		r.tool = commandTool(tools)
	}
	return r, nil
}

// checkOpenAI rejects what OpenAI rejects: unknown roles, messages without content,
// tool calls without a result and results without a call.
func checkOpenAI(messages []openAIMessage) *problem {
	pending := map[string]bool{} // calls without a result
	for i, m := range messages {
		field := fmt.Sprintf("messages.[%d].role", i)
		switch m.Role {
		case "system", "developer", "user", "assistant", "tool":
		default:
			return invalidParam(field, fmt.Sprintf("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.", m.Role))
		}
		if m.Role == "tool" {
			if !pending[m.ToolCallID] {
				return invalidParam(field, "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
			}
			delete(pending, m.ToolCallID)
		} else if len(pending) > 0 {
			return unanswered(pending, i)
		}
		if absent(m.Content) && (m.Role != "assistant" || len(m.ToolCalls) == 0) {
			return invalidParam(fmt.Sprintf("messages.[%d].content", i), fmt.Sprintf("Missing required parameter: 'messages[%d].content'.", i))
		}
		for _, c := range m.ToolCalls {
			pending[c.ID] = true
		}
	}
	if len(pending) > 0 {
		return unanswered(pending, len(messages))
	}
	return nil
}

func unanswered(pending map[string]bool, i int) *problem {
	var ids []string
	for id := range pending {
		ids = append(ids, id)
	}
	return invalidParam(fmt.Sprintf("messages.[%d].role", i), "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
		"The following tool_call_ids did not have response messages: "+strings.Join(ids[:min(len(ids), 5)], ", "))
}

type openAIReply struct {
	ID                string         `json:"id"`
	Object            string         `json:"object"`
	Created           int64          `json:"created"`
	Model             string         `json:"model"`
	SystemFingerprint string         `json:"system_fingerprint"`
	Choices           []openAIChoice `json:"choices"`
	Usage             any            `json:"usage,omitempty"`
}

type openAIChoice struct {
	Index        int                 `json:"index"`
	Message      *openAIReplyMessage `json:"message,omitempty"`
	Delta        *openAIDelta        `json:"delta,omitempty"`
	Logprobs     any                 `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
}

type openAIReplyMessage struct {
	Role      string       `json:"role"`
	Content   *string      `json:"content"`
	Reasoning string       `json:"reasoning_content,omitempty"`
	ToolCalls []openAICall `json:"tool_calls,omitempty"`
	Refusal   *string      `json:"refusal"`
}

type openAIDelta struct {
	Role      string       `json:"role,omitempty"`
	Content   *string      `json:"content,omitempty"`
	Reasoning string       `json:"reasoning_content,omitempty"`
	ToolCalls []openAICall `json:"tool_calls,omitempty"`
}

type openAICall struct {
	Index    *int   `json:"index,omitempty"` // in streams
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (openAI) frame(m *message, object string) openAIReply {
	return openAIReply{
		ID: "chatcmpl-" + m.id, Object: object, Created: m.created.Unix(), Model: m.model,
		SystemFingerprint: "fp_fake", Choices: []openAIChoice{},
	}
}

func (o openAI) plain(m *message) any {
	r := o.frame(m, "chat.completion")
	if m.usage != nil {
		r.Usage = o.usage(m)
	}
	reply := &openAIReplyMessage{Role: "assistant", Reasoning: m.thinking}
	if m.text != "" || len(m.calls) == 0 {
		reply.Content = &m.text
	}
	for _, c := range m.calls {
		call := openAICall{ID: c.idWithPrefix("call_"), Type: "function"}
		call.Function.Name, call.Function.Arguments = c.name, c.arguments
		reply.ToolCalls = append(reply.ToolCalls, call)
	}
	r.Choices = append(r.Choices, openAIChoice{Message: reply, FinishReason: o.finish(m)})
	return r
}

// events returns the chunks of a reply. If the request asks for usage, the last
// chunk has it, and the others have null.
func (o openAI) events(m *message) [][]byte {
	var parts [][]byte
	add := func(d *openAIDelta, finish *string) {
		chunk := o.frame(m, "chat.completion.chunk")
		chunk.Choices = []openAIChoice{{Delta: d, FinishReason: finish}}
		if m.usageEvent {
			chunk.Usage = json.RawMessage("null")
		}
		parts = append(parts, event("", chunk))
	}
	empty := ""
	add(&openAIDelta{Role: "assistant", Content: &empty}, nil)
	for _, s := range pieces(m.thinking) {
		add(&openAIDelta{Reasoning: s}, nil)
	}
	for _, s := range pieces(m.text) {
		add(&openAIDelta{Content: &s}, nil)
	}
	for i, c := range m.calls {
		call := openAICall{Index: &i, ID: c.idWithPrefix("call_"), Type: "function"}
		call.Function.Name = c.name
		add(&openAIDelta{ToolCalls: []openAICall{call}}, nil)
		for _, s := range pieces(c.arguments) {
			rest := openAICall{Index: &i}
			rest.Function.Arguments = s
			add(&openAIDelta{ToolCalls: []openAICall{rest}}, nil)
		}
	}
	if f := o.finish(m); f != nil {
		add(&openAIDelta{}, f)
	}
	if m.usageEvent && m.usage != nil {
		last := o.frame(m, "chat.completion.chunk")
		last.Usage = o.usage(m)
		parts = append(parts, event("", last))
	}
	return append(parts, []byte("data: [DONE]\n\n"))
}

func (openAI) finish(m *message) *string {
	if m.finish == "" {
		return nil
	}
	f := string(m.finish)
	if len(m.calls) > 0 && m.finish == model.FinishStop {
		f = "tool_calls"
	}
	return &f
}

// usage returns OpenAI's usage, with OpenRouter's fields for cache writes and cost.
func (openAI) usage(m *message) any {
	u := m.usage
	prompt := object{"cached_tokens", u.CacheRead, "audio_tokens", 0}
	if u.CacheWrite > 0 {
		prompt = append(prompt, "cache_write_tokens", u.CacheWrite)
	}
	out := object{
		"prompt_tokens", u.Prompt, "completion_tokens", u.Completion, "total_tokens", u.Prompt + u.Completion,
		"prompt_tokens_details", prompt,
		"completion_tokens_details",
		object{
			"reasoning_tokens", u.Reasoning, "audio_tokens", 0, "accepted_prediction_tokens", 0, "rejected_prediction_tokens", 0,
		},
	}
	if m.reportCost {
		out = append(out, "cost", m.cost)
	}
	return out
}

func (openAI) startUsage(*message) *model.Usage { return nil }

// problem returns p.body, or else an error object with OpenAI's four fields.
func (openAI) problem(p problem, _ string) []byte {
	if p.body != "" {
		return []byte(p.body)
	}
	return jsonOf(map[string]any{"error": openAIError(p)}, "  ")
}

func openAIError(p problem) any {
	object := struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}{Message: p.message, Type: p.typ}
	if p.param != "" {
		object.Param = &p.param
	}
	if p.code != "" {
		object.Code = &p.code
	}
	return object
}

func (openAI) headers(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("Openai-Version", "2020-10-01")
}
