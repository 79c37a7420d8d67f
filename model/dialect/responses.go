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
	return addItems(out, items)
}

// addItems appends items as messages. Successive items of the model are one message.
func addItems(out []model.Message, items []responseItem) ([]model.Message, error) {
	ofModel := false // the last message is still growing
	grow := func() *model.Message {
		if !ofModel {
			out, ofModel = append(out, model.Message{Role: model.Assistant}), true
		}
		return &out[len(out)-1]
	}
	for _, it := range items {
		switch {
		case strings.HasSuffix(it.Type, "_call_output"):
			out, ofModel = append(out, model.Message{Role: model.Tool, Content: itemText(it.Output), ToolCallID: it.CallID}), false
		case it.Type == "function_call":
			m := grow()
			m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: it.CallID, Name: it.Name, Arguments: it.Arguments})
		case it.Type == "custom_tool_call":
			m := grow()
			m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: it.CallID, Name: it.Name, Arguments: it.Input})
		case strings.HasSuffix(it.Type, "shell_call"):
			m := grow()
			m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: it.CallID, Name: it.Type, Arguments: string(it.Action)})
		case it.Type == "reasoning":
			m := grow()
			m.Reasoning = join(m.Reasoning, itemText(it.Summary))
		case it.Role == model.Assistant:
			m := grow()
			m.Content = join(m.Content, itemText(it.Content))
		case it.Role != "":
			role := it.Role
			if role == "developer" {
				role = model.System
			}
			out, ofModel = append(out, model.Message{Role: role, Content: itemText(it.Content)}), false
			if hasRemoteFile(it.Content) {
				return nil, ErrRemoteFile
			}
		}
	}
	return out, nil
}

func hasRemoteFile(content json.RawMessage) bool {
	var parts []struct {
		ImageURL string `json:"image_url"`
		FileURL  string `json:"file_url"`
	}
	_ = json.Unmarshal(content, &parts) // a string has no parts
	for _, p := range parts {
		if isRemote(p.ImageURL) || isRemote(p.FileURL) {
			return true
		}
	}
	return false
}

// itemText returns the text of a content.
func itemText(content json.RawMessage) string {
	all := text(content)
	var parts []struct{ Text, Refusal string }
	_ = json.Unmarshal(content, &parts) // a string has no parts
	for _, p := range parts {
		all = join(all, join(p.Text, p.Refusal))
	}
	return all
}

// response is a response object.
type response struct {
	Status     string
	Model      string
	Output     *[]responseItem
	Incomplete struct{ Reason string } `json:"incomplete_details"`
	Usage      struct {
		Input   int64 `json:"input_tokens"`
		Output  int64 `json:"output_tokens"`
		Details struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
}

// Reply implements Dialect.
func (responses) Reply(body []byte, p model.Price) (model.Reply, error) {
	if IsError(body) {
		return model.Reply{}, transport.Classify(0, transport.ParseErrorDetail(body))
	}
	var r response
	if err := json.Unmarshal(body, &r); err != nil || r.Output == nil {
		return model.Reply{}, transport.UnexpectedResponse("check the base URL (model.base_url)", "the answer is no response object")
	}
	u := r.Usage
	reply := model.Reply{Model: r.Model, Raw: body, FinishReason: model.FinishStop, Usage: model.Usage{
		Prompt: transport.ClampTokens(u.Input), Completion: transport.ClampTokens(u.Output),
		CacheRead: transport.ClampTokens(u.Details.Cached), Reasoning: transport.ClampTokens(u.OutputDetails.Reasoning),
	}}
	setCost(&reply, p)
	reply.Message.Role = model.Assistant
	if list, _ := addItems(nil, *r.Output); len(list) > 0 {
		reply.Message = list[0]
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
	return keepTypes(tool, "function", "custom", "local_shell", "shell", "apply_patch", "namespace", "tool_search")
}

func (responses) serverFields() []string { return nil }
