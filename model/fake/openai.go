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

func (openAI) frame(m *message, kind string, choices []any, usage any) object {
	o := object{
		"id", "chatcmpl-" + m.id, "object", kind, "created", m.created.Unix(), "model", m.model,
		"system_fingerprint", "fp_fake", "choices", choices,
	}
	if usage != nil {
		o = append(o, "usage", usage)
	}
	return o
}

func (o openAI) plain(m *message) any {
	var usage any
	if m.usage != nil {
		usage = o.usage(m)
	}
	reply := object{"role", "assistant", "content", m.text}
	if m.text == "" && len(m.calls) > 0 {
		reply[3] = nil
	}
	if m.thinking != "" {
		reply = append(reply, "reasoning_content", m.thinking)
	}
	var calls []any
	for _, c := range m.calls {
		calls = append(calls, object{"id", c.idWithPrefix("call_"), "type", "function", "function", object{"name", c.name, "arguments", c.arguments}})
	}
	if calls != nil {
		reply = append(reply, "tool_calls", calls)
	}
	choice := object{"index", 0, "message", append(reply, "refusal", nil), "logprobs", nil, "finish_reason", o.finish(m)}
	return o.frame(m, "chat.completion", []any{choice}, usage)
}

// events returns the chunks of a reply. If the request asks for usage, the last
// chunk has it, and the others have null.
func (o openAI) events(m *message) [][]byte {
	const kind = "chat.completion.chunk"
	var parts [][]byte
	var usage any
	if m.usageEvent {
		usage = json.RawMessage("null")
	}
	add := func(delta object, finish *string) {
		choice := object{"index", 0, "delta", delta, "logprobs", nil, "finish_reason", finish}
		parts = append(parts, event("", o.frame(m, kind, []any{choice}, usage)))
	}
	add(object{"role", "assistant", "content", ""}, nil)
	for _, s := range pieces(m.thinking) {
		add(object{"reasoning_content", s}, nil)
	}
	for _, s := range pieces(m.text) {
		add(object{"content", s}, nil)
	}
	for i, c := range m.calls {
		call := object{"index", i, "id", c.idWithPrefix("call_"), "type", "function", "function", object{"name", c.name, "arguments", ""}}
		add(object{"tool_calls", []any{call}}, nil)
		for _, s := range pieces(c.arguments) {
			add(object{"tool_calls", []any{object{"index", i, "function", object{"arguments", s}}}}, nil)
		}
	}
	if f := o.finish(m); f != nil {
		add(object{}, f)
	}
	if m.usageEvent && m.usage != nil {
		parts = append(parts, event("", o.frame(m, kind, []any{}, o.usage(m))))
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
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return jsonOf(object{"error", object{"message", p.message, "type", p.typ, "param", orNull(p.param), "code", orNull(p.code)}}, "  ")
}

func (openAI) headers(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("Openai-Version", "2020-10-01")
}
