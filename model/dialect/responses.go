package dialect

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// responses is OpenAI's Responses.
type responses struct{}

// Name implements Dialect.
func (responses) Name() string { return "responses" }

// responseItem is an item of an input or output, of any type.
type responseItem struct {
	Type      string
	Role      model.Role
	Content   json.RawMessage // text or parts
	CallID    string          `json:"call_id"`
	Name      string
	Arguments string
	Input     string          // of a custom tool call
	Output    json.RawMessage // text or parts
	Action    json.RawMessage // of a shell call
	Summary   json.RawMessage // of reasoning
}

// Messages implements Dialect.
func (responses) Messages(b *Body) ([]model.Message, error) {
	var out []model.Message
	if system := b.Text("instructions"); system != "" {
		out = append(out, model.Message{Role: model.System, Content: system})
	}
	if input := b.Text("input"); input != "" {
		return append(out, model.Message{Role: model.User, Content: input}), nil
	}
	var items []responseItem
	if err := json.Unmarshal(b.Get("input"), &items); err != nil {
		return nil, err
	}
	return addItems(out, items), nil
}

// addItems appends items as messages. Successive items of the model are one message.
func addItems(out []model.Message, items []responseItem) []model.Message {
	var last *model.Message // of the model, and still growing
	var content, reasoning paragraphs
	grow := func() *model.Message {
		if last == nil {
			last = &model.Message{Role: model.Assistant}
		}
		return last
	}
	end := func() {
		if last != nil {
			last.Content, last.Reasoning = content.String(), reasoning.String()
			out = append(out, *last)
		}
		last, content, reasoning = nil, paragraphs{}, paragraphs{}
	}
	for _, it := range items {
		arguments := it.Arguments
		switch {
		case it.Type == "custom_tool_call":
			arguments = it.Input
		case strings.HasSuffix(it.Type, "shell_call"):
			it.Name, arguments = it.Type, string(it.Action)
		}
		switch {
		case strings.HasSuffix(it.Type, "_call_output"):
			end()
			out = append(out, model.Message{Role: model.Tool, Content: partsText(it.Output), ToolCallID: it.CallID})
		case it.Type == "function_call" || it.Type == "custom_tool_call" || strings.HasSuffix(it.Type, "shell_call"):
			m := grow()
			m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: it.CallID, Name: it.Name, Arguments: arguments})
		case it.Type == "reasoning":
			grow()
			reasoning.add(partsText(it.Summary))
		case it.Role == model.Assistant:
			grow()
			content.add(partsText(it.Content))
		case it.Role != "":
			end()
			if it.Role == "developer" {
				it.Role = model.System
			}
			out = append(out, model.Message{Role: it.Role, Content: partsText(it.Content)})
		}
	}
	end()
	return out
}

// response is a response object.
type response struct {
	Status     string
	Model      string
	Output     *[]responseItem
	Incomplete struct{ Reason string } `json:"incomplete_details"`
	Usage      struct {
		Input   transport.Number `json:"input_tokens"`
		Output  transport.Number `json:"output_tokens"`
		Details struct {
			Cached transport.Number `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning transport.Number `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
}

// Reply implements Dialect.
func (responses) Reply(body []byte, p model.Price) (model.Reply, error) {
	if IsError(body) {
		return model.Reply{}, transport.Classify(0, transport.ParseErrorDetail(body))
	}
	var r response
	if err := transport.Unmarshal(body, &r); err != nil || r.Output == nil {
		return model.Reply{}, transport.UnexpectedResponse("check the base URL (model.base_url)", "the answer is no response object")
	}
	u := r.Usage
	reply := model.Reply{Model: r.Model, Raw: body, FinishReason: model.FinishStop, Usage: model.Usage{
		Prompt: u.Input.Tokens(), Completion: u.Output.Tokens(),
		CacheRead: u.Details.Cached.Tokens(), Reasoning: u.OutputDetails.Reasoning.Tokens(),
	}}
	setCost(&reply, p)
	reply.Message.Role = model.Assistant
	if list := addItems(nil, *r.Output); len(list) > 0 {
		reply.Message = list[0]
	}
	if err := transport.CheckToolCalls(len(reply.Message.ToolCalls)); err != nil {
		return reply, err
	}
	switch {
	case len(reply.Message.ToolCalls) > 0:
		reply.FinishReason = model.FinishToolCalls
	case r.Incomplete.Reason == "max_output_tokens":
		reply.FinishReason = model.FinishLength
	case r.Incomplete.Reason == "content_filter":
		return reply, &model.Error{Status: model.ContentRefused, Err: errors.New("the provider's content filter withheld the answer")}
	}
	return reply, nil
}

// setCost sets the cost of a reply, or counts it as unpriced.
func setCost(r *model.Reply, p model.Price) {
	if counted := r.Usage.Prompt > 0; p.IsKnown() && (counted || p.Free) {
		r.Cost = p.CostOf(r.Usage)
	} else {
		r.Usage.Unpriced = 1
	}
}

// Stream implements Dialect.
func (d responses) Stream(events iter.Seq2[[]byte, error], p model.Price) (model.Reply, error) {
	for data, err := range events {
		if err != nil {
			return model.Reply{}, err
		}
		var e struct {
			Type     string
			Response json.RawMessage
		}
		switch err := json.Unmarshal(data, &e); {
		case err != nil:
			return model.Reply{}, transport.MalformedResponse("read event: %w", err)
		case e.Type == "response.failed":
			return model.Reply{}, transport.Classify(0, transport.ParseErrorDetail(e.Response))
		case IsError(data):
			return model.Reply{}, transport.Classify(0, transport.ParseErrorDetail(data))
		case d.IsTerminal(data):
			return d.Reply(e.Response, p)
		}
	}
	return model.Reply{}, transport.MalformedResponse("the stream ended before the answer did (no response.completed)")
}

// IsTerminal implements Dialect.
func (responses) IsTerminal(data []byte) bool {
	switch typeOf(data) {
	case "response.completed", "response.incomplete", "response.failed":
		return true
	}
	return false
}

// HasEventNames implements Dialect.
func (responses) HasEventNames() bool { return true }

// Problem implements Dialect.
func (responses) Problem(status int, message string) []byte { return openAIProblem(status, message) }

func (responses) keepTool(tool json.RawMessage) (json.RawMessage, bool) {
	var shell struct{ Environment struct{ Type string } }
	if json.Unmarshal(tool, &shell) != nil || shell.Environment.Type != "" && shell.Environment.Type != "local" {
		return nil, false // a shell in a container of the provider
	}
	return keepTypes(tool, "function", "custom", "local_shell", "shell", "apply_patch", "namespace", "tool_search")
}

var responsesFields = strings.Fields(`model instructions input tools tool_choice parallel_tool_calls reasoning store stream stream_options
	include service_tier prompt_cache_key prompt_cache_retention text client_metadata max_output_tokens max_tool_calls temperature
	top_p top_logprobs truncation user safety_identifier metadata context_management`)

func (responses) fields() []string { return responsesFields }
