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

// answer is a message object.
type answer struct {
	Type    string             `json:"type"`
	Error   json.RawMessage    `json:"error"`
	Model   string             `json:"model"`
	Content *[]json.RawMessage `json:"content"` // nil where it is missing
	// StopReason is empty in an answer that is not complete.
	StopReason  string `json:"stop_reason"`
	StopDetails struct {
		Category    string `json:"category"`
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
	Usage usage `json:"usage"`
}

// usage counts tokens: those of the input that the cache has nothing to do
// with, and the others.
type usage struct {
	Input       count `json:"input_tokens"`
	CacheRead   count `json:"cache_read_input_tokens"`
	CacheWrite  count `json:"cache_creation_input_tokens"`
	CacheWrites struct {
		Hour count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output  count `json:"output_tokens"`
	Details struct {
		Thinking count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// count is a number of tokens; 0 where a server says something else.
type count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(data []byte) error {
	var n int64
	if json.Unmarshal(data, &n) != nil {
		n = 0
	}
	*c = count(transport.Tokens(n))
	return nil
}

// part is a block of an answer. Of other kinds than these only the raw text is
// of interest.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`

	raw json.RawMessage
}

// parseReply reads a message object. An answer that was withheld comes with
// its usage beside the error.
func parseReply(body []byte, price model.Price) (model.Reply, error) {
	var raw json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&raw); err != nil {
		return model.Reply{}, foreign("read answer: %w", err)
	}
	var a answer
	err := json.Unmarshal(raw, &a)
	switch {
	case a.Type == "error" || (len(a.Error) > 0 && string(a.Error) != "null"):
		return model.Reply{}, failed(raw)
	case err != nil:
		return model.Reply{}, foreign("read answer: %w", err)
	case a.Content == nil:
		return model.Reply{}, foreign("the answer has no content")
	}
	message, err := messageOf(*a.Content)
	if err != nil {
		return model.Reply{}, err
	}
	reply := model.Reply{Message: message, Finish: finishOf(a.StopReason), Usage: a.Usage.total(), Model: a.Model, Raw: raw}
	bill(&reply, price)
	return reply, checkFinish(a)
}

// bill says what an answer cost, or that nobody knows.
func bill(r *model.Reply, price model.Price) {
	if counted := r.Usage.Prompt > 0; price.Known() && (counted || price.Free) {
		r.Cost = price.Of(r.Usage)
	} else { // there is no prompt of no tokens: what it took was not said
		r.Usage.Unpriced = 1
	}
}

// messageOf takes the blocks of an answer apart. What is more than text and
// calls after it is kept as it came.
func messageOf(content []json.RawMessage) (model.Message, error) {
	m := model.Message{Role: model.Assistant}
	var parts []part
	var thoughts []string
	var text strings.Builder
	keep, before := false, ""
	for _, raw := range content {
		p := part{raw: raw}
		if err := json.Unmarshal(raw, &p); err != nil || p.Type == "" {
			return m, foreign("read answer: a part of it is of no kind")
		}
		switch p.Type {
		case "text":
			if before != "text" && text.Len() > 0 {
				text.WriteString("\n\n") // something else stood between
			}
			text.WriteString(p.Text)
			keep = keep || len(m.Calls) > 0
		case "thinking":
			thoughts = append(thoughts, p.Thinking)
			keep = true
		case "tool_use":
			m.Calls = append(m.Calls, model.Call{ID: p.ID, Name: p.Name, Arguments: arguments(p.Input)})
		default:
			keep = true
		}
		before = p.Type
		parts = append(parts, p)
	}
	m.Content, m.Reasoning = text.String(), strings.Join(thoughts, "\n\n")
	if !keep {
		return m, nil
	}
	var err error
	m.Kept, err = keptOf(parts)
	return m, err
}

// arguments are a call's, as the model wrote them: where these were no JSON
// they stand in a string.
func arguments(input json.RawMessage) string {
	var torn string
	if json.Unmarshal(input, &torn) == nil && len(input) > 0 && input[0] == '"' {
		return torn
	}
	return string(input)
}

// kept is the form of model.Message.Kept here; others have others.
type kept struct {
	Blocks []json.RawMessage `json:"anthropic"`
}

// keptOf keeps the blocks of an answer for being sent back. The API itself
// does not take texts of spaces, which it writes between thinking and calls.
func keptOf(parts []part) (json.RawMessage, error) {
	var k kept
	for _, p := range parts {
		if p.Type == "text" && strings.TrimSpace(p.Text) == "" {
			continue
		}
		raw := p.raw
		if p.Type == "tool_use" && !isObject(p.Input) {
			var err error
			if raw, err = json.Marshal(toolUse(model.Call{ID: p.ID, Name: p.Name, Arguments: arguments(p.Input)})); err != nil {
				return nil, transport.Broken("read answer: %w", err)
			}
		}
		k.Blocks = append(k.Blocks, raw)
	}
	raw, err := json.Marshal(k)
	if err != nil {
		return nil, transport.Broken("read answer: %w", err)
	}
	return raw, nil
}

// Reasons for the end of an answer that end the attempt too.
const (
	stopRefusal = "refusal"
	stopContext = "model_context_window_exceeded"
)

// finishOf translates the reasons that mini tells apart.
func finishOf(reason string) model.Finish {
	switch reason {
	case "end_turn", "stop_sequence":
		return model.FinishStop
	case "max_tokens":
		return model.FinishLength
	case "tool_use":
		return model.FinishTools
	case stopRefusal:
		return model.FinishFilter
	}
	return model.Finish(reason)
}

// checkFinish refuses answers that are none.
func checkFinish(a answer) error {
	switch a.StopReason {
	case "":
		return transport.Broken("the answer ended before it was complete (no stop_reason)")
	case stopRefusal:
		why := strings.Trim(a.StopDetails.Category+": "+a.StopDetails.Explanation, ": ")
		if why == "" {
			why = "it does not say why"
		}
		return &model.Error{Status: model.ContentRefused, Err: fmt.Errorf("the provider withheld the answer: %.1000s", why)}
	case stopContext:
		return &model.Error{Status: model.ContextWindowExceeded, Err: errors.New("the answer came to the end of the context window")}
	}
	return nil
}

// total counts as mini does: the cache's tokens are a part of the prompt.
func (u usage) total() model.Usage {
	read, write := int64(u.CacheRead), int64(u.CacheWrite)
	return model.Usage{
		Prompt: int64(u.Input) + read + write, Completion: int64(u.Output),
		CacheRead: read, CacheWrite: write, CacheWriteHour: min(write, int64(u.CacheWrites.Hour)),
		Reasoning: int64(u.Details.Thinking),
	}
}
