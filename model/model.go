// Package model says what a language model is to mini: something that answers
// a list of messages, and says what the answer cost.
//
// Types and one interface, standard library only. Providers live beside it
// (openai, scripted), one folder each, and know nothing of agents or sandboxes.
// A provider makes one request a Query; what is done about its failures, and
// how many requests go out at once, is put around it (retry, governor).
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
// unless they say otherwise, and never change the messages they are given.
//
// Query returns when the reply is complete, or with an error that wraps
// *Error, or with ctx's cause. A reply cut short by the token limit is a
// reply (Finish is FinishLength), not an error. Beside an error the Reply says
// what the call took all the same: usage, cost, attempts.
type Model interface {
	Query(ctx context.Context, messages []Message) (Reply, error)
}

// Finish says why a reply ended.
type Finish string

// The reasons mini tells apart. Providers' other words are kept as they are.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"         // the token limit cut the reply
	FinishTools  Finish = "tool_calls"     // the model waits for its tools
	FinishFilter Finish = "content_filter" // the provider withheld it
)

// Reply is one answer of a model.
type Reply struct {
	Message Message
	Finish  Finish
	Usage   Usage
	Cost    Cost
	// Model is the name the provider gave for what answered; may be empty.
	Model string
	// Raw is the provider's own response where it is at hand.
	Raw json.RawMessage
	// Tries counts the requests made, failed ones included: at least 1, but for
	// a call that was given up before its first. Waited is the time spent
	// before and between them.
	Tries  int
	Waited time.Duration
	// Attempts are the requests, one by one, where a policy was at work. Usage
	// and Cost are those of all.
	Attempts []Attempt
	// Limits are what the provider says it allows.
	Limits Limits
}

// Attempt is one request of a call.
type Attempt struct {
	// Model is who was asked, where there are several.
	Model string
	// Queued was waited before the request, for its turn; Waited after it,
	// before the next one.
	Queued  time.Duration
	Start   time.Time
	Elapsed time.Duration
	Waited  time.Duration
	// Status, Code, RetryAfter and Error are those of the failure; empty where
	// the request was answered. The text is bounded.
	Status     Status
	Code       int
	RetryAfter time.Duration
	Error      string
	// Usage and Cost are there also for an answer that was of no use, where
	// the provider says what it took.
	Usage Usage
	Cost  Cost
}

// Limits bound the requests and tokens of a minute; 0 is not known.
type Limits struct{ Requests, Tokens int64 }

// Usage counts the tokens of one call, or of many added up. Prompt includes
// CacheRead and CacheWrite, CacheWrite includes CacheWriteHour, and Completion
// includes Reasoning.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	CacheRead  int64 `json:"cached_tokens,omitempty"`
	// CacheWrite were written into the provider's cache, where that is billed;
	// CacheWriteHour of them for an hour rather than for minutes.
	CacheWrite     int64 `json:"cache_write_tokens,omitempty"`
	CacheWriteHour int64 `json:"cache_write_hour_tokens,omitempty"`
	Reasoning      int64 `json:"reasoning_tokens,omitempty"`
	// Unpriced counts calls whose cost nobody knows: a sum of costs is short of
	// what these took.
	Unpriced int64 `json:"unpriced_calls,omitempty"`
}

// Add returns the sum of both.
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

// Cost is money, in US dollars: as much of it as is known (see Usage.Unpriced).
type Cost float64

// Known is the cost of a usage, or nil where nobody knows any part of it.
func (c Cost) Known(u Usage) *Cost {
	if c == 0 && u.Unpriced > 0 {
		return nil
	}
	return &c
}
