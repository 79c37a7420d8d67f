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

// Role says who speaks.
type Role string

// The roles of the chat completion APIs.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one turn of a conversation, in the form every provider shares.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// Reasoning is the thinking a provider shows beside the content; it is
	// recorded, and sent back only where a provider asks for it.
	Reasoning string `json:"reasoning_content,omitempty"`
}

// Finish says why a reply ended.
type Finish string

// The reasons mini tells apart. Providers' other words are kept as they are.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"         // the token limit cut the reply
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
// CacheRead, Completion includes Reasoning.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	CacheRead  int64 `json:"cached_tokens,omitempty"`
	Reasoning  int64 `json:"reasoning_tokens,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Prompt:     u.Prompt + v.Prompt,
		Completion: u.Completion + v.Completion,
		CacheRead:  u.CacheRead + v.CacheRead,
		Reasoning:  u.Reasoning + v.Reasoning,
	}
}

// Cost is money, in US dollars.
type Cost float64

// Price is what tokens cost, in US dollars per million. A zero Price means
// that the price is not known, and every call costs 0.
type Price struct {
	Input  float64 `yaml:"input" json:"input"`
	Cached float64 `yaml:"cached" json:"cached"` // prompt tokens read from the provider's cache; 0 means Input
	Output float64 `yaml:"output" json:"output"`
}

// Known says whether there is a price at all.
func (p Price) Known() bool { return p != Price{} }

// Of returns the cost of one call.
func (p Price) Of(u Usage) Cost {
	cached := p.Cached
	if cached == 0 {
		cached = p.Input
	}
	fresh := float64(u.Prompt - u.CacheRead)
	return Cost((fresh*p.Input + float64(u.CacheRead)*cached + float64(u.Completion)*p.Output) / 1e6)
}
