package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// parseReply reads a message object. An answer that was withheld comes with
// its usage beside the error.
func parseReply(body []byte, price model.Price) (model.Reply, error) {
	var head struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
		// Nil where it is missing: the client library would say "".
		Content *[]json.RawMessage `json:"content"`
	}
	var raw json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&raw); err != nil {
		return model.Reply{}, foreign("read answer: %w", err)
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return model.Reply{}, foreign("read answer: %w", err)
	}
	if head.Type == "error" || (len(head.Error) > 0 && string(head.Error) != "null") {
		return model.Reply{}, failed(raw)
	}
	if head.Content == nil {
		return model.Reply{}, foreign("the answer has no content")
	}
	var m sdk.Message
	if err := json.Unmarshal(raw, &m); err != nil {
		return model.Reply{}, foreign("read answer: %w", err)
	}
	message, err := messageOf(m.Content)
	if err != nil {
		return model.Reply{}, err
	}
	reply := model.Reply{
		Message: message, Finish: finishOf(m.StopReason), Usage: usageOf(m.Usage), Model: m.Model, Raw: raw,
	}
	bill(&reply, price)
	return reply, checkFinish(m)
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
func messageOf(blocks []sdk.ContentBlockUnion) (model.Message, error) {
	m := model.Message{Role: model.Assistant}
	var thoughts []string
	var text strings.Builder
	keep, before := false, ""
	for _, b := range blocks {
		switch b.Type {
		case "text":
			if before != "text" && text.Len() > 0 {
				text.WriteString("\n\n") // something else stood between
			}
			text.WriteString(b.Text)
			keep = keep || len(m.Calls) > 0
		case "thinking":
			thoughts = append(thoughts, b.Thinking)
			keep = true
		case "tool_use":
			m.Calls = append(m.Calls, model.Call{ID: b.ID, Name: b.Name, Arguments: arguments(b.Input)})
		case "":
			return m, foreign("read answer: a part of it is of no kind")
		default:
			keep = true
		}
		before = b.Type
	}
	m.Content, m.Reasoning = text.String(), strings.Join(thoughts, "\n\n")
	if !keep {
		return m, nil
	}
	var err error
	m.Kept, err = keptOf(blocks)
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
func keptOf(blocks []sdk.ContentBlockUnion) (json.RawMessage, error) {
	var k kept
	for _, b := range blocks {
		if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
			continue
		}
		raw := json.RawMessage(b.RawJSON())
		if b.Type == "tool_use" && !object(b.Input) {
			var err error
			if raw, err = json.Marshal(toolUse(model.Call{ID: b.ID, Name: b.Name, Arguments: arguments(b.Input)})); err != nil {
				return nil, broken("read answer: %w", err)
			}
		}
		k.Blocks = append(k.Blocks, raw)
	}
	raw, err := json.Marshal(k)
	if err != nil {
		return nil, broken("read answer: %w", err)
	}
	return raw, nil
}

// finishOf translates the reasons that mini tells apart.
func finishOf(r sdk.StopReason) model.Finish {
	switch r {
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence:
		return model.FinishStop
	case sdk.StopReasonMaxTokens:
		return model.FinishLength
	case sdk.StopReasonToolUse:
		return model.FinishTools
	case sdk.StopReasonRefusal:
		return model.FinishFilter
	}
	return model.Finish(r)
}

// checkFinish refuses answers that are none.
func checkFinish(m sdk.Message) error {
	switch m.StopReason {
	case "":
		return broken("the answer ended before it was complete (no stop_reason)")
	case sdk.StopReasonRefusal:
		why := strings.Trim(fmt.Sprintf("%s: %s", m.StopDetails.Category, m.StopDetails.Explanation), ": ")
		if why == "" {
			why = "it does not say why"
		}
		return &model.Error{Status: model.ContentRefused, Err: fmt.Errorf("the provider withheld the answer: %.1000s", why)}
	case sdk.StopReasonModelContextWindowExceeded:
		return &model.Error{Status: model.ContextWindowExceeded, Err: errors.New("the answer came to the end of the context window")}
	}
	return nil
}

// usageOf counts as mini does: the API's input tokens are those that the cache
// has nothing to do with.
func usageOf(u sdk.Usage) model.Usage {
	read, write := transport.Tokens(u.CacheReadInputTokens), transport.Tokens(u.CacheCreationInputTokens)
	return model.Usage{
		Prompt: transport.Tokens(u.InputTokens) + read + write, Completion: transport.Tokens(u.OutputTokens),
		CacheRead: read, CacheWrite: write, CacheWriteHour: min(write, transport.Tokens(u.CacheCreation.Ephemeral1hInputTokens)),
		Reasoning: transport.Tokens(u.OutputTokensDetails.ThinkingTokens),
	}
}
