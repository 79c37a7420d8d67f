package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// response is a message object.
type response struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"` // a list of blocks
	// StopReason is empty if the answer is incomplete.
	StopReason  string `json:"stop_reason"`
	StopDetails struct {
		Category    string `json:"category"`
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
	Usage usage `json:"usage"`
}

// usage holds token counts; input_tokens excludes cached tokens.
type usage struct {
	Input       transport.Number `json:"input_tokens"`
	CacheRead   transport.Number `json:"cache_read_input_tokens"`
	CacheWrite  transport.Number `json:"cache_creation_input_tokens"`
	CacheWrites struct {
		Hour transport.Number `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output  transport.Number `json:"output_tokens"`
	Details struct {
		Thinking transport.Number `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// part is a block of an answer. Blocks of types that mini does not interpret are
// only passed on, as raw.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       transport.Text  `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`

	raw json.RawMessage
}

// parseReply reads a message object. If the answer is incomplete, withheld or ended by the
// context window, it returns an error and a reply with the usage.
func parseReply(body []byte, price model.Price) (model.Reply, error) {
	var raw json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&raw); err != nil {
		return model.Reply{}, unexpected("read answer: %w", err)
	}
	var a response
	var blocks []json.RawMessage
	err := transport.Unmarshal(raw, &a)
	switch {
	case a.Type == "error" || transport.IsPresent(a.Error):
		return model.Reply{}, apiError(raw)
	case err != nil:
		return model.Reply{}, unexpected("read answer: %w", err)
	case json.Unmarshal(a.Content, &blocks) != nil || blocks == nil:
		return model.Reply{}, unexpected("the answer has no content")
	}
	message, err := messageOf(blocks)
	if err != nil {
		return model.Reply{}, err
	}
	reply := model.Reply{Message: message, FinishReason: finishOf(a.StopReason), Usage: a.Usage.total(), Model: a.Model, Raw: raw}
	setCost(&reply, price)
	if err := transport.CheckToolCalls(len(message.ToolCalls)); err != nil {
		return reply, err
	}
	return reply, checkFinish(a)
}

// setCost sets the cost of a reply, or counts it as unpriced.
func setCost(r *model.Reply, price model.Price) {
	if counted := r.Usage.Prompt > 0; price.IsKnown() && (counted || price.Free) {
		r.Cost = price.CostOf(r.Usage)
	} else { // a usage without prompt tokens is unknown: every prompt has some
		r.Usage.Unpriced = 1
	}
}

// messageOf converts the blocks of an answer to a message. Unless the blocks are only text
// followed by calls, it also saves them all as ProviderData.
func messageOf(content []json.RawMessage) (model.Message, error) {
	m := model.Message{Role: model.Assistant}
	var parts []part
	var thoughts []string
	var text strings.Builder
	needsBlocks, previous := false, ""
	for _, raw := range content {
		p := part{raw: raw}
		if err := transport.Unmarshal(raw, &p); err != nil || p.Type == "" {
			return m, unexpected("read answer: a content block has no type")
		}
		switch p.Type {
		case "text":
			if previous != "text" && text.Len() > 0 {
				text.WriteString("\n\n") // a block of another type was in between
			}
			text.WriteString(p.Text)
			needsBlocks = needsBlocks || len(m.ToolCalls) > 0
		case "thinking":
			thoughts = append(thoughts, p.Thinking)
			needsBlocks = true
		case "tool_use":
			m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: string(p.ID), Name: p.Name, Arguments: arguments(p.Input)})
		default:
			needsBlocks = true
		}
		previous = p.Type
		parts = append(parts, p)
	}
	m.Content, m.Reasoning = text.String(), strings.Join(thoughts, "\n\n")
	if !needsBlocks {
		return m, nil
	}
	var err error
	m.ProviderData, err = encodeBlocks(parts)
	return m, err
}

// arguments returns a call's arguments as the model wrote them. Invalid JSON
// arrives as a string.
func arguments(input json.RawMessage) string {
	var text string
	if json.Unmarshal(input, &text) == nil && len(input) > 0 && input[0] == '"' {
		return text
	}
	return string(input)
}

// providerData is the JSON of model.Message.ProviderData of this provider.
type providerData struct {
	Blocks []json.RawMessage `json:"anthropic"`
}

// encodeBlocks returns the blocks of an answer as ProviderData. It drops blank texts, which
// the API sends between thinking and calls but does not accept, and replaces arguments that
// are not an object (see toolUse).
func encodeBlocks(parts []part) (json.RawMessage, error) {
	var data providerData
	for _, p := range parts {
		if p.Type == "text" && strings.TrimSpace(p.Text) == "" {
			continue
		}
		raw := p.raw
		if p.Type == "tool_use" && !isObject(p.Input) {
			var err error
			if raw, err = json.Marshal(toolUse(model.ToolCall{ID: string(p.ID), Name: p.Name, Arguments: arguments(p.Input)})); err != nil {
				return nil, transport.MalformedResponse("read answer: %w", err)
			}
		}
		data.Blocks = append(data.Blocks, raw)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, transport.MalformedResponse("read answer: %w", err)
	}
	return raw, nil
}

// Stop reasons that end the attempt.
const (
	stopRefusal = "refusal"
	stopContext = "model_context_window_exceeded"
)

// finishOf translates stop reasons to finish reasons.
func finishOf(reason string) model.FinishReason {
	switch reason {
	case "end_turn", "stop_sequence":
		return model.FinishStop
	case "max_tokens":
		return model.FinishLength
	case "tool_use":
		return model.FinishToolCalls
	case stopRefusal:
		return model.FinishContentFilter
	}
	return model.FinishReason(reason)
}

// checkFinish returns an error for unusable answers.
func checkFinish(a response) error {
	switch a.StopReason {
	case "":
		return transport.MalformedResponse("the answer ended before it was complete (no stop_reason)")
	case stopRefusal:
		reason := strings.Trim(a.StopDetails.Category+": "+a.StopDetails.Explanation, ": ")
		if reason == "" {
			reason = "no reason given"
		}
		return &model.Error{Status: model.ContentRefused, Err: fmt.Errorf("the provider withheld the answer: %.1000s", reason)}
	case stopContext:
		return &model.Error{Status: model.ContextWindowExceeded, Err: errors.New("the answer reached the end of the context window")}
	}
	return nil
}

// total converts u to a model.Usage, whose prompt includes cached tokens.
func (u usage) total() model.Usage {
	read, write := u.CacheRead.Tokens(), u.CacheWrite.Tokens()
	return model.Usage{
		Prompt: u.Input.Tokens() + read + write, Completion: u.Output.Tokens(),
		CacheRead: read, CacheWrite: write, CacheWriteHour: min(write, u.CacheWrites.Hour.Tokens()),
		Reasoning: u.Details.Thinking.Tokens(),
	}
}
