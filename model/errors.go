package model

import (
	"net/http"
	"time"
)

// Status names a kind of failure. It becomes the exit status of the attempt, so
// the names are part of the file format.
type Status string

// The kinds of failure. ContextWindowExceeded and ContentRefused are caused by
// the agent's conversation and end an attempt with a result (outcome class
// "limit"). The others are failures of the provider; the attempt may be retried.
const (
	AuthenticationError   Status = "AuthenticationError"
	RateLimited           Status = "RateLimited"
	ProviderError         Status = "ProviderError"
	BadRequest            Status = "BadRequest"
	ContextWindowExceeded Status = "ContextWindowExceeded"
	ContentRefused        Status = "ContentRefused"
	// MalformedCall reports that the provider could not read a tool call that the model
	// wrote. The model is told, as for any reply in a wrong format.
	MalformedCall Status = "MalformedCall"
	// ScriptExhausted reports that a script has no reply left. It is not a
	// result: a script that is too short must not score 0.
	ScriptExhausted Status = "ScriptExhausted"
)

// Error is a failed request, or the last failure of a call whose tries all
// failed. Callers find it with errors.AsType. Its text contains no keys.
type Error struct {
	Status Status
	// HTTPStatus is the HTTP status; 0 if there was no response.
	HTTPStatus int
	// Retryable reports that the same request may succeed later. RetryAfter is
	// how long the provider asked to wait; 0 if it did not say.
	Retryable  bool
	RetryAfter time.Duration
	// RetryNow reports that the next request will be a different one (for
	// example, not streamed) and need not wait.
	RetryNow bool
	// MaybeMisconfigured reports that a wrong base URL would fail like this: no
	// server answers, or it answers with a web page. Until the first good answer,
	// a call retries such failures only a few times.
	MaybeMisconfigured bool
	// PromptTokens and ContextTokens are, with ContextWindowExceeded, the length of the
	// prompt and of the context window that the server names; 0 if it names none.
	PromptTokens, ContextTokens int64
	Hint                        string // what the user can do; may be empty
	Err                         error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return string(e.Status)
	}
	return string(e.Status) + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// IsOverloaded reports whether the provider is overloaded or limits the rate:
// callers should send fewer requests, not only repeat this one.
func (e *Error) IsOverloaded() bool {
	const statusOverloaded = 529 // used by Anthropic and some proxies
	return e.Retryable && (e.Status == RateLimited || e.HTTPStatus == statusOverloaded ||
		e.HTTPStatus == http.StatusServiceUnavailable && e.RetryAfter > 0)
}
