package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	client "github.com/sashabaranov/go-openai"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// extras are the parts of an answer that the client library leaves out.
type extras struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Message unknown         `json:"message"`
		Error   json.RawMessage `json:"error"` // OpenRouter
	} `json:"choices"`
	Usage struct {
		Cost      *model.Cost `json:"cost"`                    // OpenRouter
		CacheHits int64       `json:"prompt_cache_hit_tokens"` // DeepSeek
		Details   struct {
			CacheWrites int64 `json:"cache_write_tokens"` // OpenRouter
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// parseReply reads a chat.completion object. An answer that was withheld comes
// with its usage beside the error.
func parseReply(body []byte, price model.Price) (model.Reply, error) {
	var raw json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&raw); err != nil {
		return model.Reply{}, foreign("read answer: %w", err)
	}
	var resp client.ChatCompletionResponse
	var more extras
	if err := errors.Join(json.Unmarshal(raw, &resp), json.Unmarshal(raw, &more)); err != nil {
		return model.Reply{}, foreign("read answer: %w", err)
	}
	// What was of no use may have taken something all the same.
	reply := model.Reply{Usage: usageOf(resp.Usage, more), Model: resp.Model, Raw: raw}
	bill(&reply, more.Usage.Cost, price, len(resp.Choices) > 0 && !unfinished(model.Finish(resp.Choices[0].FinishReason)))
	switch {
	case present(more.Error):
		return reply, transport.Classify(0, transport.ParseDetail(raw))
	case len(resp.Choices) == 0 || len(more.Choices) == 0:
		return reply, foreign("the answer has no choices")
	case present(more.Choices[0].Error):
		return reply, transport.Classify(0, transport.ParseDetail(more.Choices[0].Error))
	}
	reply.Message = messageOf(resp.Choices[0].Message, more.Choices[0].Message.Reasoning)
	var err error
	if reply.Message.Kept, err = more.Choices[0].Message.keep(); err != nil {
		return reply, err
	}
	reply.Finish = model.Finish(resp.Choices[0].FinishReason)
	return reply, checkFinish(reply, resp.Choices[0].Message.Refusal)
}

// taken is what the beginning of an answer says that it took. Few servers say
// so before the end.
func taken(part []byte, price model.Price) model.Reply {
	if part == nil {
		return model.Reply{}
	}
	reply, _ := parseReply(part, price) // that it is no answer is known
	return model.Reply{Usage: reply.Usage, Cost: reply.Cost}
}

// bill says what an answer cost: who sends the bill knows best, a price comes
// next. An answer whose tokens nobody counted has no known cost, whatever the
// price; what is no answer, or not all of one, and counts none took nothing.
func bill(r *model.Reply, stated *model.Cost, price model.Price, answered bool) {
	counted := r.Usage != model.Usage{}
	switch {
	case stated != nil && *stated >= 0:
		r.Cost = *stated
	case price.Free || price.Known() && counted:
		r.Cost = price.Of(r.Usage)
	case answered || counted:
		r.Usage.Unpriced = 1
	}
}

func messageOf(m client.ChatCompletionMessage, reasoning string) model.Message {
	var parts strings.Builder
	for _, p := range m.MultiContent {
		parts.WriteString(p.Text)
	}
	if m.ReasoningContent != "" {
		reasoning = m.ReasoningContent
	}
	out := model.Message{Role: model.Assistant, Content: m.Content + parts.String(), Reasoning: reasoning}
	for _, c := range m.ToolCalls {
		out.Calls = append(out.Calls, model.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return out
}

func usageOf(u client.Usage, more extras) model.Usage {
	out := model.Usage{
		Prompt: transport.Tokens(u.PromptTokens), Completion: transport.Tokens(u.CompletionTokens),
		CacheRead: transport.Tokens(more.Usage.CacheHits), CacheWrite: transport.Tokens(more.Usage.Details.CacheWrites),
	}
	if d := u.PromptTokensDetails; d != nil && d.CachedTokens > 0 {
		out.CacheRead = transport.Tokens(d.CachedTokens)
	}
	if d := u.CompletionTokensDetails; d != nil {
		out.Reasoning = transport.Tokens(d.ReasoningTokens)
	}
	return out
}

// checkFinish refuses answers that are none.
func checkFinish(r model.Reply, refusal string) error {
	switch {
	case unfinished(r.Finish):
		return transport.Broken("the answer ended before it was complete (no finish_reason)")
	case r.Finish == "error":
		return transport.Broken("the server broke the answer off")
	case r.Finish == model.FinishFilter:
		return &model.Error{Status: model.ContentRefused, Err: errors.New("the provider's content filter withheld the answer")}
	case refusal != "" && r.Message.Content == "" && len(r.Message.Calls) == 0:
		return &model.Error{Status: model.ContentRefused, Err: fmt.Errorf("the model refused: %s", refusal)}
	}
	return nil
}

// unfinished says that an answer does not say how it ended: it did not.
func unfinished(f model.Finish) bool { return f == "" || f == "null" }

func present(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != `""`
}

// foreign is an answer that is none of this API: it may be a bad moment, or
// another kind of server.
func foreign(format string, args ...any) error {
	return transport.Foreign("check the base URL (model.base_url); that of most servers ends with /v1", format, args...)
}
