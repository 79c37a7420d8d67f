package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// response is a chat.completion object with extensions of some servers.
type response struct {
	Error   json.RawMessage `json:"error"`
	Model   string          `json:"model"`
	Choices []struct {
		Message received           `json:"message"`
		Finish  model.FinishReason `json:"finish_reason"`
		Error   json.RawMessage    `json:"error"` // OpenRouter
		Usage   usage              `json:"usage"` // Moonshot
	} `json:"choices"`
	Usage usage `json:"usage"`
}

// usage holds token counts. Prompt includes cached tokens, and Completion reasoning, except
// in the answers of servers that count reasoning only in Total (Gemini, xAI).
type usage struct {
	Prompt        transport.Number  `json:"prompt_tokens"`
	Completion    transport.Number  `json:"completion_tokens"`
	Total         transport.Number  `json:"total_tokens"`
	Cost          *transport.Number `json:"cost"`                    // OpenRouter
	CacheHits     transport.Number  `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached        transport.Number  `json:"cached_tokens"`           // Moonshot
	PromptDetails struct {
		Cached      transport.Number `json:"cached_tokens"`
		CacheWrites transport.Number `json:"cache_write_tokens"` // OpenRouter
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning transport.Number `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// received is the message of a response. See message for the fields that are sent back.
type received struct {
	Content      any             `json:"content"`
	Reasoning    string          `json:"reasoning_content"`
	ReasoningAlt string          `json:"reasoning"`
	Refusal      string          `json:"refusal"`
	Details      json.RawMessage `json:"reasoning_details"`
	Extra        json.RawMessage `json:"extra_content"`
	Calls        []receivedCall  `json:"tool_calls"`
}

type receivedCall struct {
	ID       transport.Text `json:"id"`
	Function struct {
		Name string `json:"name"`
		// Arguments is a string with JSON, or the object itself (llama.cpp, Ollama).
		Arguments transport.Text `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"`
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
	if err := transport.Unmarshal(raw, &a); err != nil {
		return model.Reply{}, unexpected("read answer: %w", err)
	}
	// Set the cost first: unusable answers may be billed, too.
	if a.Usage == (usage{}) && len(a.Choices) > 0 {
		a.Usage = a.Choices[0].Usage
	}
	reply := model.Reply{Usage: a.Usage.total(), Model: a.Model, Raw: raw}
	setCost(&reply, a.Usage.Cost, price, len(a.Choices) > 0 && !isUnfinished(a.Choices[0].Finish))
	switch {
	case transport.IsPresent(a.Error):
		return reply, transport.Classify(0, transport.ParseErrorDetail(raw))
	case len(a.Choices) == 0:
		return reply, withoutChoices(transport.ParseErrorDetail(raw))
	case transport.IsPresent(a.Choices[0].Error):
		return reply, transport.Classify(0, transport.ParseErrorDetail(a.Choices[0].Error))
	}
	choice := a.Choices[0].Message
	if err := transport.CheckToolCalls(len(choice.Calls)); err != nil {
		return reply, err
	}
	var err error
	if reply.Message, err = choice.message(); err != nil {
		return reply, err
	}
	reply.FinishReason = a.Choices[0].Finish
	return reply, checkFinish(reply, choice.Refusal)
}

// setCost sets the cost of a reply: the cost that the server reported, or else the
// cost by price. It counts the reply as unpriced if the price is unknown, or if the
// answer is complete but has no token counts. An incomplete answer without token
// counts costs nothing.
func setCost(r *model.Reply, reported *transport.Number, price model.Price, complete bool) {
	counted := r.Usage != model.Usage{}
	switch {
	case reported != nil && *reported >= 0:
		r.Cost = model.Cost(*reported)
	case price.Free || price.IsKnown() && counted:
		r.Cost = price.CostOf(r.Usage)
	case complete || counted:
		r.Usage.Unpriced = 1
	}
}

// message returns the reply for the history. It fails if the content or the calls have a
// type that is not known: a part of the reply would be lost.
func (m received) message() (model.Message, error) {
	out := model.Message{Role: model.Assistant, Reasoning: cmp.Or(m.Reasoning, m.ReasoningAlt)}
	switch content := m.Content.(type) {
	case nil:
	case string:
		out.Content = content
	case []any: // Mistral
		out.Content = textOf(content)
	default:
		return out, unexpected("the content of the answer is neither a text nor a list")
	}
	for _, c := range m.Calls {
		out.ToolCalls = append(out.ToolCalls, model.ToolCall{ID: string(c.ID), Name: c.Function.Name, Arguments: string(c.Function.Arguments)})
	}
	var err error
	out.ProviderData, err = m.providerData()
	return out, err
}

// textOf joins the texts of a content in parts.
func textOf(parts []any) string {
	var b strings.Builder
	for _, p := range parts {
		if object, ok := p.(map[string]any); ok {
			p = object["text"]
		}
		text, _ := p.(string)
		b.WriteString(text)
	}
	return b.String()
}

// withoutChoices returns the error of an answer without choices. Some servers report
// errors so, with the message beside other fields.
func withoutChoices(d transport.ErrorDetail) error {
	if d.Message == "" {
		return unexpected("the answer has no choices")
	}
	if e := transport.Classify(0, d); e.Status != model.ProviderError {
		return e
	}
	return unexpected("the answer has no choices: %s", d.Message)
}

func (u usage) total() model.Usage {
	completion := u.Completion
	if u.Prompt > 0 {
		completion = max(completion, u.Total-u.Prompt)
	}
	return model.Usage{
		Prompt: u.Prompt.Tokens(), Completion: completion.Tokens(),
		CacheRead:  cmp.Or(u.PromptDetails.Cached, u.CacheHits, u.Cached).Tokens(),
		CacheWrite: u.PromptDetails.CacheWrites.Tokens(), Reasoning: u.CompletionDetails.Reasoning.Tokens(),
	}
}

// Finish reasons of unusable answers, in the words of many servers.
var (
	finishMalformed = lazyregexp.New(`(?i)malformed`)
	finishFull      = lazyregexp.New(`(?i)context_(window|length)`)
	finishFiltered  = lazyregexp.New(`(?i)content_filter|sensitive|safety|prohibited|blocklist|recitation`)
	finishAborted   = lazyregexp.New(`(?i)error`)
)

// checkFinish returns an error for unusable answers.
func checkFinish(r model.Reply, refusal string) error {
	reason := string(r.FinishReason)
	switch {
	case isUnfinished(r.FinishReason):
		return transport.MalformedResponse("the answer ended before it was complete (no finish_reason)")
	case finishMalformed.MatchString(reason): // Gemini
		return &model.Error{Status: model.MalformedCall, Err: fmt.Errorf("the answer ended with %.100q", reason)}
	case finishFull.MatchString(reason):
		return &model.Error{Status: model.ContextWindowExceeded, Err: errors.New("the answer reached the end of the context window")}
	case finishFiltered.MatchString(reason):
		return &model.Error{Status: model.ContentRefused, Err: errors.New("the provider's content filter withheld the answer")}
	case finishAborted.MatchString(reason):
		return transport.MalformedResponse("the server aborted the answer (%.100q)", reason)
	case refusal != "" && r.Message.Content == "" && len(r.Message.ToolCalls) == 0:
		return &model.Error{Status: model.ContentRefused, Err: fmt.Errorf("the model refused: %s", refusal)}
	}
	return nil
}

// isUnfinished reports whether a finish reason is missing: the answer is incomplete.
func isUnfinished(f model.FinishReason) bool { return f == "" || f == "null" }

// unexpected returns the error of a response that is not from this API: a
// temporary failure, or a different kind of server.
func unexpected(format string, args ...any) error {
	return transport.UnexpectedResponse("check the base URL (model.base_url); that of most servers ends with /v1", format, args...)
}
