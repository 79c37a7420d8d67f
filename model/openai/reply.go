package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// response is a chat.completion object with extensions of some servers.
type response struct {
	Error   json.RawMessage `json:"error"`
	Model   string          `json:"model"`
	Choices []struct {
		Message message            `json:"message"`
		Finish  model.FinishReason `json:"finish_reason"`
		Error   json.RawMessage    `json:"error"` // OpenRouter
	} `json:"choices"`
	Usage struct {
		Prompt        int64       `json:"prompt_tokens"`
		Completion    int64       `json:"completion_tokens"`
		Cost          *model.Cost `json:"cost"`                    // OpenRouter
		CacheHits     int64       `json:"prompt_cache_hit_tokens"` // DeepSeek
		PromptDetails struct {
			Cached      int64 `json:"cached_tokens"`
			CacheWrites int64 `json:"cache_write_tokens"` // OpenRouter
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
}

// ReadReply reads a chat.completion object of a request that another client wrote. With an
// error, the reply has the usage that is known.
func ReadReply(body []byte, price model.Price) (model.Reply, error) { return parseReply(body, price) }

// ReadStream is ReadReply for the data of the events of a streamed answer.
func ReadStream(events iter.Seq2[[]byte, error], price model.Price) (model.Reply, error) {
	return readStream(events, transport.Redactor{}, nil, price)
}

// parseReply reads a chat.completion object. If the object can be read but the answer is
// unusable, it returns an error and a reply with the usage.
func parseReply(body []byte, price model.Price) (model.Reply, error) {
	var raw json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&raw); err != nil {
		return model.Reply{}, unexpected("read answer: %w", err)
	}
	var a response
	if err := json.Unmarshal(raw, &a); err != nil {
		return model.Reply{}, unexpected("read answer: %w", err)
	}
	// Set the cost first: unusable answers may be billed, too.
	reply := model.Reply{Usage: a.usage(), Model: a.Model, Raw: raw}
	setCost(&reply, a.Usage.Cost, price, len(a.Choices) > 0 && !isUnfinished(a.Choices[0].Finish))
	switch {
	case isPresent(a.Error):
		return reply, transport.Classify(0, transport.ParseErrorDetail(raw))
	case len(a.Choices) == 0:
		return reply, unexpected("the answer has no choices")
	case isPresent(a.Choices[0].Error):
		return reply, transport.Classify(0, transport.ParseErrorDetail(a.Choices[0].Error))
	}
	choice := a.Choices[0].Message
	reply.Message = choice.message()
	var err error
	if reply.Message.ProviderData, err = choice.providerData(); err != nil {
		return reply, err
	}
	reply.FinishReason = a.Choices[0].Finish
	return reply, checkFinish(reply, choice.Refusal)
}

// setCost sets the cost of a reply: the cost that the server reported, or else the
// cost by price. It counts the reply as unpriced if the price is unknown, or if the
// answer is complete but has no token counts. An incomplete answer without token
// counts costs nothing.
func setCost(r *model.Reply, reported *model.Cost, price model.Price, complete bool) {
	counted := r.Usage != model.Usage{}
	switch {
	case reported != nil && *reported >= 0:
		r.Cost = *reported
	case price.Free || price.IsKnown() && counted:
		r.Cost = price.CostOf(r.Usage)
	case complete || counted:
		r.Usage.Unpriced = 1
	}
}

func (m message) message() model.Message {
	out := model.Message{Role: model.Assistant, Reasoning: m.ReasoningAlt}
	if m.Reasoning != nil && *m.Reasoning != "" {
		out.Reasoning = *m.Reasoning
	}
	switch content := m.Content.(type) {
	case string:
		out.Content = content
	case []any: // Mistral
		out.Content = textOf(content)
	}
	for _, c := range m.Calls {
		out.ToolCalls = append(out.ToolCalls, model.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return out
}

// textOf joins the texts of a content in parts.
func textOf(parts []any) string {
	var b strings.Builder
	for _, p := range parts {
		object, _ := p.(map[string]any)
		text, _ := object["text"].(string)
		b.WriteString(text)
	}
	return b.String()
}

func (a response) usage() model.Usage {
	u := a.Usage
	out := model.Usage{
		Prompt: transport.ClampTokens(u.Prompt), Completion: transport.ClampTokens(u.Completion), CacheRead: transport.ClampTokens(u.CacheHits),
		CacheWrite: transport.ClampTokens(u.PromptDetails.CacheWrites), Reasoning: transport.ClampTokens(u.CompletionDetails.Reasoning),
	}
	if cached := u.PromptDetails.Cached; cached > 0 {
		out.CacheRead = transport.ClampTokens(cached)
	}
	return out
}

// checkFinish returns an error for unusable answers.
func checkFinish(r model.Reply, refusal string) error {
	switch {
	case isUnfinished(r.FinishReason):
		return transport.MalformedResponse("the answer ended before it was complete (no finish_reason)")
	case r.FinishReason == "error":
		return transport.MalformedResponse("the server aborted the answer")
	case r.FinishReason == model.FinishContentFilter:
		return &model.Error{Status: model.ContentRefused, Err: errors.New("the provider's content filter withheld the answer")}
	case refusal != "" && r.Message.Content == "" && len(r.Message.ToolCalls) == 0:
		return &model.Error{Status: model.ContentRefused, Err: fmt.Errorf("the model refused: %s", refusal)}
	}
	return nil
}

// isUnfinished reports whether a finish reason is missing: the answer is incomplete.
func isUnfinished(f model.FinishReason) bool { return f == "" || f == "null" }

func isPresent(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != `""`
}

// unexpected returns the error of a response that is not from this API: a
// temporary failure, or a different kind of server.
func unexpected(format string, args ...any) error {
	return transport.UnexpectedResponse("check the base URL (model.base_url); that of most servers ends with /v1", format, args...)
}
