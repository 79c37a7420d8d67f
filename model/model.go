// Package model defines Model, the interface of language models, with the
// messages, replies, usage and errors that all providers share.
//
// It depends on the standard library only. Each provider is a package below it
// (openai, anthropic, scripted) and knows nothing of agents or sandboxes. A
// provider sends one request per Query; retry and rate limiting are separate
// Models that wrap it (retry, ratelimit).
//
//	m, err := openai.New(openai.Config{Name: "gpt-5-mini", APIKey: key})
//	reply, err := m.Query(ctx, []model.Message{{Role: model.User, Content: "hello"}})
package model

import (
	"context"
	"encoding/json"
	"time"
)

// Model answers conversations. Implementations are safe for concurrent use
// unless documented otherwise, and do not modify the messages.
//
// Query returns the complete reply, an error that wraps *Error, or ctx's cause.
// A reply cut off by the token limit is not an error; its FinishReason is
// FinishLength. With an error, the Reply still reports what the call used:
// Usage, Cost, Requests.
type Model interface {
	Query(ctx context.Context, messages []Message) (Reply, error)
}

// FinishReason says why a reply ended.
type FinishReason string

// The finish reasons that mini interprets. Others have the provider's spelling.
const (
	FinishStop          FinishReason = "stop"
	FinishLength        FinishReason = "length"         // cut off by the token limit
	FinishToolCalls     FinishReason = "tool_calls"     // waits for the results of tool calls
	FinishContentFilter FinishReason = "content_filter" // withheld by the provider
)

// Reply is the answer of a model.
type Reply struct {
	Message      Message
	FinishReason FinishReason
	Usage        Usage
	Cost         Cost
	// Model is the name the provider reported; may be empty.
	Model string
	// Raw is the provider's response, if available.
	Raw json.RawMessage
	// Tokens are those of the prompt and of the reply, if the model was asked for them and the provider
	// sent them. Raw is then without them.
	Tokens *Tokens
	// Tries is the number of requests sent, including failed ones. It is 0 only
	// if the call ended before the first request. Waited is the time spent waiting
	// before and between requests.
	Tries  int
	Waited time.Duration
	// Requests describes each request; package retry sets it. Usage and Cost are
	// the totals of all requests.
	Requests []Request
	// RateLimits are the limits that the provider reported.
	RateLimits RateLimits
}

// Tokens are the tokens of a call: those that the server made of the prompt, and those that it sampled.
type Tokens struct {
	Prompt, Completion []int32
	// Logprobs are the log probabilities of the tokens of Completion, Texts their texts; nil if the server
	// sent none.
	Logprobs []float64
	Texts    []string
}

// Request is one request of a call.
type Request struct {
	// Model is the model asked, if there are several.
	Model string
	// Queued is how long the request waited for the rate limiter, Waited the
	// pause between this request and the next.
	Queued  time.Duration
	Start   time.Time
	Elapsed time.Duration
	Waited  time.Duration
	// Status, HTTPStatus, RetryAfter and Error describe the failure; they are empty
	// if the request succeeded. The length of Error is bounded.
	Status     Status
	HTTPStatus int
	RetryAfter time.Duration
	Error      string
	// Usage and Cost are also set for unusable answers, if the provider reports
	// them.
	Usage Usage
	Cost  Cost
}

// RateLimits are requests and tokens per minute; 0 means unknown.
type RateLimits struct{ RequestsPerMinute, TokensPerMinute int64 }

// Usage counts the tokens of one call or of several. Prompt includes CacheRead
// and CacheWrite, CacheWrite includes CacheWriteHour, Completion includes
// Reasoning.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	CacheRead  int64 `json:"cached_tokens,omitempty"`
	// CacheWrite counts tokens written to the provider's cache, if it bills
	// them; CacheWriteHour those with a lifetime of an hour.
	CacheWrite     int64 `json:"cache_write_tokens,omitempty"`
	CacheWriteHour int64 `json:"cache_write_hour_tokens,omitempty"`
	Reasoning      int64 `json:"reasoning_tokens,omitempty"`
	// Unpriced counts calls of unknown cost. If it is not 0, a sum of costs is
	// incomplete.
	Unpriced int64 `json:"unpriced_calls,omitempty"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Prompt:         u.Prompt + v.Prompt,
		Completion:     u.Completion + v.Completion,
		CacheRead:      u.CacheRead + v.CacheRead,
		CacheWrite:     u.CacheWrite + v.CacheWrite,
		CacheWriteHour: u.CacheWriteHour + v.CacheWriteHour,
		Reasoning:      u.Reasoning + v.Reasoning,
		Unpriced:       u.Unpriced + v.Unpriced,
	}
}

// Cost is an amount in US dollars, excluding calls of unknown cost (see
// Usage.Unpriced).
type Cost float64

// IfKnown returns a pointer to c, the cost of u; nil if c is 0 and u has calls of
// unknown cost.
func (c Cost) IfKnown(u Usage) *Cost {
	if c == 0 && u.Unpriced > 0 {
		return nil
	}
	return &c
}
