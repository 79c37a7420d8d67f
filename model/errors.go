package model

import (
	"net/http"
	"time"
)

// Status names how a provider failed; it becomes the exit status of the
// attempt, so the names are part of the file format.
type Status string

// The failures mini tells apart. ContextWindowExceeded and ContentRefused are
// the model's doing and end an attempt with a result (outcome class "limit");
// the others are the provider's, and the attempt may be tried again.
const (
	AuthenticationError   Status = "AuthenticationError"
	RateLimited           Status = "RateLimited"
	ProviderError         Status = "ProviderError"
	BadRequest            Status = "BadRequest"
	ContextWindowExceeded Status = "ContextWindowExceeded"
	ContentRefused        Status = "ContentRefused"
	// ScriptExhausted is the scripted model's: it has no reply left. Nothing
	// scores 0 because a script is too short.
	ScriptExhausted Status = "ScriptExhausted"
)

// Error is a failed request, or what is left of a call when all its tries
// failed. Callers find it with errors.AsType. Its text never holds a key.
type Error struct {
	Status Status
	// Code is the HTTP status; 0 when no answer came.
	Code int
	// Retryable says that the same request may succeed later; RetryAfter is
	// how long the provider asked to wait, 0 if it did not say.
	Retryable  bool
	RetryAfter time.Duration
	// AtOnce says that the next request will be another one, which has nothing
	// to wait for.
	AtOnce bool
	// Suspect says that a wrong setting looks the same: nobody answers at the
	// address, or somebody with a web page. Until there was a good answer, that
	// is not tried for long.
	Suspect bool
	Hint    string // what the user can do about it; may be empty
	Err     error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return string(e.Status)
	}
	return string(e.Status) + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Overloaded says that the provider wants fewer requests, rather than this one
// another time.
func (e *Error) Overloaded() bool {
	const siteOverloaded = 529 // Anthropic's, and of some proxies
	return e.Retryable && (e.Status == RateLimited || e.Code == siteOverloaded ||
		e.Code == http.StatusServiceUnavailable && e.RetryAfter > 0)
}
