// Package model says what a language model is to mini: something that answers
// a list of messages, and says what the answer cost.
//
// Types and one interface, standard library only. Providers live beside it
// (openai, scripted), one folder each, and know nothing of agents or sandboxes.
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
// reply (Finish is FinishLength), not an error.
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
	// Tries counts the requests made, failed ones included: at least 1.
	// Waited is the time spent between them.
	Tries  int
	Waited time.Duration
}

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
